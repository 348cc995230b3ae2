"""What an estimator is, how one is found and built by its name, and the one loss that applies them.

A sampled softmax draws its items once for a batch, each with a known probability.
Shapes: M masked slots, D width, V items, K items drawn.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import AtLeastOne, Share, UnveilError, check_ranges
from unveil.estimators import losses
from unveil.estimators.losses import Wide
from unveil.propensity.base import OF_EVENTS, PROPENSITIES, PropensityModel
from unveil.propensity.known import TrueWorld
from unveil.registry import Registry

_STREAM = 7  # keeps these draws apart from others of the same batch


@dataclass(frozen=True, eq=False)
class Sample:
    """K items that stand for all."""

    item_K: Tensor
    offset_MK: Tensor  # added to their logits in training, −log π_j included; one row if the same at all slots
    own_M: Tensor  # added to the targets' logits, which are always there: no π for them

    def to(self, device: torch.device | str) -> Self:
        return type(self)(*(part.to(device) for part in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws about K of the V items without replacement, item j with probability π_j > 0.

    E[Σ_{j drawn} x_j / π_j] = Σ_j x_j (D. Horvitz and D. Thompson, 1952). With K = V all items are drawn.
    """

    chance_V: NDArray[np.float64]

    @classmethod
    def by_count(cls, count_V: NDArray[Any], negatives: int, power: float) -> Self:
        """π_j ∝ (count_j + 1)^power where that is below 1; certain where it is not."""
        share_V, certain_V = (count_V + 1.0) ** power, np.zeros(len(count_V), bool)
        while True:
            left = max(min(negatives, len(count_V)) - int(certain_V.sum()), 0)
            chance_V = np.where(certain_V, 1.0, share_V * (left / max(share_V[~certain_V].sum(), 1e-300)))
            if not (over_V := (chance_V >= 1) & ~certain_V).any():
                return cls(chance_V)
            certain_V |= over_V

    def draw(self, lot: tuple[int, ...]) -> NDArray[np.int64]:
        """The items of a batch, by systematic sampling: steps of 1 over Σ π in random order, from a random start."""
        rng = np.random.default_rng([*lot, _STREAM])
        order_V = rng.permutation(len(self.chance_V))
        tooth_V = np.floor(np.cumsum(self.chance_V[order_V]) + rng.random())
        hit_V = (np.diff(tooth_V, prepend=0.0) > 0) | (self.chance_V[order_V] >= 1)
        return np.sort(order_V[hit_V])


def sampled_loss(
    h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, target_M: Tensor, weight_M: Tensor, sample: Sample
) -> Tensor:
    """−Σ_m w_m log (e^z_t / Ẑ_m) with Ẑ_m = e^z_t + Σ_{j drawn, j ≠ t} e^(z_j − log π_j), and z = f + offset.

    E[Ẑ] = Z: loss and gradient tend to those of the softmax over all items, and equal them when all are drawn.
    """
    K = sample.item_K
    z_MK = torch.addmm(bias_V.index_select(0, K), h_MD, F.embedding(K, table_VD).T) + sample.offset_MK.to(h_MD.dtype)
    z_MK = z_MK.masked_fill(target_M[:, None] == K, -torch.inf)
    own_M = (h_MD * F.embedding(target_M, table_VD)).sum(1) + bias_V.index_select(0, target_M)
    z_MK1 = torch.cat([(own_M + sample.own_M.to(h_MD.dtype))[:, None], z_MK], 1)
    first_M = torch.zeros_like(target_M)
    return (weight_M.detach().to(h_MD.dtype) * F.cross_entropy(z_MK1, first_M, reduction="none")).sum()


#: Pairs of slot and item whose θ is computed at once; items for each one drawn above which pairs are quicker than all.
_PAIRS, _FEW = 1 << 18, 8


@dataclass(frozen=True, eq=False)
class OverSample:
    """`negatives` items a batch, all slots sharing them, item j with a chance ∝ (training events of j + 1)^power.

    They depend on (seed, epoch, nth batch) alone: the same in a run that is resumed, or divided over processes.
    """

    negatives: AtLeastOne = 256
    power: Share = 0.75

    sampler: Sampler = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        object.__setattr__(self, "sampler", Sampler.by_count(train.count_V, self.negatives, self.power))
        return self

    def drawn(self, slots: Slots) -> tuple[Tensor, Tensor]:
        """item_K of the slots' batch, and log π_K."""
        item_K = self.sampler.draw(slots.lot)
        log_chance_K = np.log(self.sampler.chance_V[item_K]).astype(np.float32)
        return torch.from_numpy(item_K).to(slots.item_M.device), torch.from_numpy(log_chance_K).to(slots.item_M.device)


def theta_of_some(propensity: PropensityModel, slots: Slots, item_K: Tensor, n_items: int) -> Tensor:
    """θ_MK of some items at the slots; pair by pair where all items would be far more than these."""
    if n_items <= _FEW * len(item_K) or propensity.source in OF_EVENTS:  # they know the chosen item alone
        return propensity.of_all(slots)[:, item_K]
    rows = max(1, _PAIRS // len(item_K))
    parts = []
    for at in range(0, max(len(slots), 1), rows):
        part = slots.part(at, at + rows)
        every = part.at(torch.arange(len(part), device=item_K.device).repeat_interleave(len(item_K)))
        parts.append(propensity(replace(every, item_M=item_K.repeat(len(part)))).reshape(-1, len(item_K)))
    return torch.cat(parts)


#: What an estimator asks for beside the log: a propensity of one kind, ratings in it, or the truth of a world.
Need = Literal["nothing", "static", "temporal", "ratings", "impressions", "truth"]


@dataclass(frozen=True, eq=False)
class Signal:
    """What the network learns at each slot: the target item, its weight, and at most one of the six parts below.

    Only imputed labels and an offset go together: the offset then holds for the target alone. A part with a number for
    every item is a tensor, or `ByRows`, which is computed some slots at a time.
    """

    target_M: Tensor
    weight_M: Tensor
    offset_MV: Wide | None = None  # training sees f + offset, serving f alone
    rival_MV: Wide | None = None  # a_j: how much it counts that the target ranks above item j
    imputed_MV: Wide | None = None  # soft labels, predicted beside the target
    theta_MV: Wide | None = None  # P(exposed): the target was chosen among the exposed
    sample: Sample | None = field(default=None, kw_only=True)  # items drawn that stand for all others
    skips: losses.Skips | None = field(default=None, kw_only=True)  # shown and not clicked: a loss beside the softmax

    @property
    def weighted(self) -> bool:
        """Whether all that is known of exposure is in the weights."""
        return all(part is None for part in (self.offset_MV, self.rival_MV, self.theta_MV, self.sample, self.skips))

    def to(self, device: torch.device | str) -> Self:
        return replace(self, **{name: part.to(device) for name, part in vars(self).items() if part is not None})


class Estimator(Protocol):
    """From slots to a `Signal`. Every loss in the package is `cloze_risk` of such a signal."""

    name: ClassVar[str]
    needs: ClassVar[Need]

    @property
    def self_normalised(self) -> bool:
        """Whether the risk is divided by the sum of the weights rather than by the number of slots."""

    def __call__(self, slots: Slots) -> Signal:
        """The signal at these slots."""


@runtime_checkable
class Explaining(Protocol):
    """An estimator that explains a part of the choices by something other than f, such as exposure."""

    def offset(self, slots: Slots) -> Tensor:
        """offset_MV with P(chosen) ∝ exp(f + offset), or in the order of it: what it expects of a log, not of users."""


ESTIMATORS: Registry[Estimator] = Registry(
    "estimator",
    package="unveil.estimators",
    group="unveil.estimators",
    aliases={  # names before 0.2
        "ever": "wmf-distilled",
        "ever-rated": "wmf-distilled-rated",
        "corrected-taught": "corrected-distilled",
        "tempered": "corrected-tempered",
    },
)
register = ESTIMATORS.register


def estimator(name: str) -> type[Estimator]:
    """The estimator class of that name; an unknown name suggests the nearest."""
    return ESTIMATORS[name]


class Checked:
    """What estimators share: options in the ranges that their types name, a propensity of the kind that is needed."""

    name: ClassVar[str]
    needs: ClassVar[Need]
    self_normalised: bool = False

    def __post_init__(self) -> None:
        check_ranges(self, self.name)
        if self.needs in ("static", "temporal"):
            check_kind(self)


def check_kind(estimator: Any) -> None:
    """A static propensity where a temporal one is needed, or the reverse, is an error."""
    given: PropensityModel = estimator.propensity
    if given.kind != estimator.needs:
        sibling = f"{given.name.removesuffix(f'-{given.kind}')}-{estimator.needs}"
        instead = sibling if sibling in PROPENSITIES else f"popularity-{estimator.needs}"
        raise UnveilError(
            f"the estimator {estimator.name!r} needs a {estimator.needs} propensity, "
            f"and {given.name!r} is {given.kind}",
            hint=f"Use a {estimator.needs} one, such as {instead!r}, or another estimator.",
        )


refuse_other_kind = check_kind  # its name in plug-ins written before 0.2


def cloze_risk(
    h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, signal: Signal, *, normaliser: float | Tensor | None = None
) -> Tensor:
    """−(1/N) Σ_m w_m log softmax(f_m + offset_m)[target_m] with the logits f_m = h_m · tableᵀ + bias.

    The losses of the paper (eqs. of L_Cloze, L_ideal, L_IPS, L_ITPS), by the signal of the estimator. N is the number
    of slots unless `normaliser` is given. No slots: no loss, and a gradient of zero. The other parts of a signal have
    losses of their own: `pairwise`, `soft_cross_entropy`, `explained`, `race`, `sampled_loss`, `Skips`.
    """
    divisor = len(signal.weight_M) if normaliser is None else normaliser
    network = (h_MD, table_VD, bias_V, signal.target_M, signal.weight_M)
    if signal.sample is not None:
        total = sampled_loss(*network, signal.sample)
    elif signal.skips is not None:
        total = signal.skips.loss(*network)
    else:
        loss, extra_MV = _loss(signal)
        total = losses.fused_loss(loss, *network, extra_MV)
    smallest = torch.finfo(h_MD.dtype).tiny
    return total / torch.as_tensor(divisor, dtype=h_MD.dtype, device=h_MD.device).clamp_min(smallest)


def _loss(signal: Signal) -> tuple[losses.ChunkLoss, Wide | losses.Both | None]:
    if signal.rival_MV is not None:
        return losses.by_slope(losses.pairwise), signal.rival_MV
    if signal.imputed_MV is not None:
        if signal.offset_MV is None:
            return losses.by_slope(losses.soft_cross_entropy), signal.imputed_MV
        return losses.by_slope(losses.explained), losses.Both(signal.imputed_MV, signal.offset_MV)
    if signal.theta_MV is not None:
        return losses.by_slope(losses.race), signal.theta_MV
    return losses.softmax_loss, signal.offset_MV


#: Slots looked at together: signals may hold a row of all items for each.
BLOCK = 4096


@runtime_checkable
class Learns(Protocol):
    """An estimator with a `fit`: `build` hands it the training part, and nothing else is ever shown to it."""

    def fit(self, train: Sequences) -> Self:
        """Learn, and return the estimator."""


def constant(slots: Slots, value: float = 1.0) -> Tensor:
    """The same number for every slot."""
    return torch.full((len(slots),), value, device=slots.item_M.device)


def events(train: Sequences) -> Slots:
    """Every event of the training part as a slot."""
    columns = (train.user_N, train.item_N, train.step_N, train.event_N)
    return Slots(*(torch.from_numpy(column.astype(np.int64)) for column in columns))


def blocks(slots: Slots) -> Iterator[Slots]:
    """The slots in parts that are small enough to hold a row of all items for each."""
    return (slots.part(at, at + BLOCK) for at in range(0, len(slots), BLOCK))


def weights_of(estimator: Estimator, slots: Slots) -> Tensor:
    """w_M of any number of slots, block by block."""
    return torch.cat([estimator(part).weight_M for part in blocks(slots)])


def build(
    name: str,
    options: Mapping[str, object],
    *,
    propensity: PropensityModel | None = None,
    world: TrueWorld | None = None,
    train: Sequences | None = None,
    log: Interactions | None = None,
) -> Estimator:
    """The estimator `name` with its options, given the propensity, world, training part or log that it needs."""
    built = ESTIMATORS.build(name, options, *parts(name, propensity, world, log))
    if not isinstance(built, Learns):
        return built
    if train is None:
        hint = "Pass the training part (train=)."
        raise UnveilError(f"the estimator {name!r} learns from the training part, and none is given", hint=hint)
    return built.fit(train)


def check_options(name: str, options: Mapping[str, object]) -> None:
    """Refuse options that the estimator does not have, or that are out of range, before anything is fitted."""
    needs = ESTIMATORS[name].needs
    if needs == "truth":
        return
    propensity = SimpleNamespace(kind=needs, name="a stand-in")
    stand_ins = [propensity] if needs in ("static", "temporal") else [None] * (needs in ("ratings", "impressions"))
    with suppress(AttributeError):  # a plug-in that needs more of its parts when it is built
        ESTIMATORS.build(name, options, *stand_ins)


#: What is missing, and what to do, where an estimator needs more than a propensity.
_MISSING = {
    "ratings": ("a log with ratings", "Use 'wmf-distilled', which needs none."),
    "impressions": (
        "a log with impressions without a click",
        "Name the column that says whether a row was clicked with --clicked-col, or use 'naive', which needs none.",
    ),
    "truth": (
        "a world whose truth is known",
        "Name the world of the log with --world (in Python, world=), or choose another estimator.",
    ),
}


def parts(
    name: str, propensity: PropensityModel | None, world: TrueWorld | None, log: Interactions | None
) -> list[object]:
    """What an estimator is built from; an error names what is missing."""
    needs = ESTIMATORS[name].needs
    if needs == "nothing":
        return []
    rated = None if log is None or log.rating is None else log
    shown = None if log is None or log.clicked is None or log.clicked.all() else log
    part = {"ratings": rated, "impressions": shown, "truth": world}.get(needs, propensity)
    if part is None:
        instead = f"Name one, such as 'recorded-{needs}', learnt from impressions; popularity is the last resort."
        what, hint = _MISSING.get(needs, (f"a {needs} propensity", instead))
        raise UnveilError(f"the estimator {name!r} needs {what}, and none is given", hint=hint)
    return [part]
