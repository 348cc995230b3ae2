"""Placings: how often each item was shown, and clicked, at each position. Shapes: N rows, P placings, K positions."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc
from torch import Tensor

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError, refuse_unless
from unveil.propensity.base import Kind, Source, of_events_alone, register
from unveil.propensity.impressions import training_impressions
from unveil.wording import quantity

Index = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Positions that a message names one by one.
_NAMED = 5


@dataclass(frozen=True, eq=False)
class Placings:
    """A row for each pair of an item and a position that occurs; `place_P` is an index into `position_K`."""

    item_P: Index
    place_P: Index
    shown_P: Floats
    clicked_P: Floats
    position_K: Index

    @classmethod
    def of(cls, item_N: NDArray[Any], position_N: NDArray[Any], clicked_N: NDArray[np.bool_], deepest: int = 0) -> Self:
        """Count impressions; positions from `deepest` on are one position, unless it is 0."""
        position_K, place_N = np.unique(pooled(position_N, deepest), return_inverse=True)
        key_N = item_N.astype(np.int64) * len(position_K) + place_N
        key_P, pair_N = np.unique(key_N, return_inverse=True)
        item_P, place_P = np.divmod(key_P, len(position_K))
        shown_P, clicked_P = (summed(pair_N, each_N) for each_N in (np.ones(len(pair_N)), clicked_N))
        return cls(item_P, place_P, shown_P, clicked_P, position_K.astype(np.int64))

    def by_position(self) -> tuple[Floats, Floats]:
        """shown_K and clicked_K."""
        shown_K, clicked_K = (
            summed(self.place_P, each_P, len(self.position_K)) for each_P in (self.shown_P, self.clicked_P)
        )
        return shown_K, clicked_K

    def telling(self) -> Self:
        """Only the items that were clicked and shown at several positions: no other says anything of positions."""
        several_P = summed(self.item_P, np.ones(len(self.item_P)))[self.item_P] > 1
        if not several_P.any():
            raise UnveilError(
                "no item was shown at two positions: what the position does cannot be told from what the item does",
                found=f"{quantity(len(self.position_K), 'position')}, {quantity(len(self.item_P), 'item')}",
                expected="items that were shown at several positions",
            )
        keep_P = several_P & (summed(self.item_P, self.clicked_P)[self.item_P] > 0)
        if not keep_P.any():
            raise UnveilError(
                "no item that was shown at two positions was ever clicked: nothing tells what the position does"
            )
        return self._where(keep_P)

    def linked(self, wanted_K: NDArray[np.bool_]) -> Self:
        """The positions that items link, one with the next, and so can be compared; all `wanted_K` must be of them."""
        _, item_P = np.unique(self.item_P, return_inverse=True)
        K, V = len(self.position_K), int(item_P.max()) + 1
        edges = csr_array((np.ones(len(item_P)), (self.place_P, K + item_P)), shape=(K + V, K + V))
        part_K = connected_components(edges, directed=False)[1][:K]
        _, clicked_K = self.by_position()
        linked_K = part_K == summed(part_K, clicked_K).argmax()
        _refuse_apart(self.position_K[wanted_K & ~linked_K].tolist())
        kept = self._where(linked_K[self.place_P])
        return replace(kept, place_P=(np.cumsum(linked_K) - 1)[kept.place_P], position_K=self.position_K[linked_K])

    def counted(self, shown_P: Floats, clicked_P: Floats) -> Self:
        """The same with other counts; placings that were not shown are left out."""
        return replace(self, shown_P=shown_P, clicked_P=clicked_P)._where(shown_P > 0)

    def _where(self, keep_P: NDArray[np.bool_]) -> Self:
        columns = {name: getattr(self, name)[keep_P] for name in ("item_P", "place_P", "shown_P", "clicked_P")}
        return replace(self, **columns)


def _refuse_apart(apart: list[int]) -> None:
    if apart:
        named = ", ".join(map(str, apart[:_NAMED])) + ", …" * (len(apart) > _NAMED)
        raise UnveilError(
            "some positions share no clicked item with the others: they cannot be compared",
            found=f"position {named}",
            hint="Count all positions from N on as one: propensity.deepest=N, or --deepest N.",
        )


def pooled(position_N: NDArray[Any], deepest: int) -> NDArray[Any]:
    """Positions as they are told apart: those from `deepest` on are one, unless it is 0."""
    return np.minimum(position_N, deepest) if deepest else position_N


def summed(index: NDArray[Any], value: NDArray[Any], size: int = 0) -> Floats:
    """The sum of the values at each index from 0."""
    return np.asarray(np.bincount(index, weights=value, minlength=size), np.float64)


#: Steps at most; and the gradient, as a share of all clicks, at which the top is reached.
_STEPS, _FLAT = 50, 1e-10
#: How far a step leads at most, in log e; and how often it is halved.
_FAR, _HALVINGS = 3.0, 30


def examined(telling: Placings, add: float) -> Floats:
    """e_K relative to the position that is examined best, which has 1.

    Beside the log there is one more item, shown everywhere alike and clicked `add` times at each position: it keeps
    every e above 0, and draws those that few clicks tell of towards each other.
    """
    refuse_unless(add > 0, "position.add", add, "above 0")
    likelihood = _Likelihood(telling, add)
    alpha_K = np.zeros(len(telling.position_K))
    for _ in range(_STEPS):
        gradient_K, information_KK = likelihood.slope(alpha_K)
        if np.abs(gradient_K).max() <= _FLAT * likelihood.clicks:
            break
        alpha_K = _uphill(likelihood, alpha_K, np.linalg.solve(information_KK, gradient_K))
    return np.asarray(np.exp(alpha_K))


def alike(telling: Placings) -> float:
    """p of a score test that all positions are examined alike: at e = 1, gᵀ I⁻¹ g is χ² with K − 1 degrees.

    I is that of rare clicks; where they are not rare the gradient varies less, and p is too large, not too small.
    """
    gradient_K, information_KK = _Likelihood(telling, 0.0).slope(np.zeros(len(telling.position_K)))
    score = float(gradient_K @ np.linalg.solve(information_KK, gradient_K))
    return float(chdtrc(len(gradient_K) - 1, score))


class _Likelihood:
    """ℓ of log e, with the added item as the last."""

    def __init__(self, telling: Placings, add: float) -> None:
        K = len(telling.position_K)
        _, item_P = np.unique(telling.item_P, return_inverse=True)
        every_K, last = np.ones(K), int(item_P.max(initial=-1)) + 1
        self.item_P = np.concatenate([item_P, np.full(K, last)])
        self.place_P = np.concatenate([telling.place_P, np.arange(K)])
        self.shown_P = np.concatenate([telling.shown_P, every_K])
        self.clicked_P = np.concatenate([telling.clicked_P, add * every_K])
        self.clicked_V = summed(self.item_P, self.clicked_P)
        self.clicks = float(self.clicked_V.sum())
        self.shape = (last + 1, K)

    def __call__(self, alpha_K: Floats) -> float:
        """ℓ, less what does not depend on e."""
        total_V = summed(self.item_P, self._weight(alpha_K))
        return float(self.clicked_P @ alpha_K[self.place_P] - self.clicked_V @ np.log(total_V))

    def slope(self, alpha_K: Floats) -> tuple[Floats, Floats]:
        """Its gradient, and minus its second derivatives; a step along equal α, which changes nothing, costs."""
        weight_P = self._weight(alpha_K)
        share_P = weight_P / summed(self.item_P, weight_P)[self.item_P]
        due_P = self.clicked_V[self.item_P] * share_P
        gradient_K, due_K = (summed(self.place_P, each_P) for each_P in (self.clicked_P - due_P, due_P))
        share_VK, due_VK = (
            csr_array((each_P, (self.item_P, self.place_P)), shape=self.shape) for each_P in (share_P, due_P)
        )
        information_KK = np.diag(due_K) - (share_VK.T @ due_VK).toarray()
        return gradient_K, information_KK + due_K.mean() / self.shape[1]

    def _weight(self, alpha_K: Floats) -> Floats:
        return np.asarray(self.shown_P * np.exp(alpha_K[self.place_P]))


def _uphill(likelihood: _Likelihood, alpha_K: Floats, step_K: NDArray[Any]) -> Floats:
    """As much of a step, halved and halved, as does not lead down; the largest α is 0."""
    step_K = step_K / max(1.0, np.abs(step_K).max() / _FAR)
    before = likelihood(alpha_K)
    for halvings in range(_HALVINGS):
        after_K = alpha_K + step_K * 0.5**halvings
        if likelihood(after_K) >= before:
            return np.asarray(after_K - after_K.max())
    return alpha_K


def drawn_again(telling: Placings, add: float, draws: int, rng: np.random.Generator) -> Floats:
    """e_DK of `draws` Poisson bootstraps: each impression counts as often as a Poisson number of mean 1 says.

    As if impressions were independent: those of one page or one person are not quite, and e is a little less sure.
    """
    return np.stack([examined(_again(telling, rng), add) for _ in range(draws)])


def _again(telling: Placings, rng: np.random.Generator) -> Placings:
    """Sums of Poisson numbers are Poisson: counts are drawn at once."""
    clicked_P = rng.poisson(telling.clicked_P).astype(np.float64)
    left_P = rng.poisson(telling.shown_P - telling.clicked_P)
    return telling.counted(clicked_P + left_P, clicked_P)


#: p above this may be chance.
CHANCE = 0.05


@register
@dataclass
class Position:
    """θ of an event is e_k: how often its position is examined, relative to the one that is examined best.

    e is told by the clicks on items that were shown at several positions, in the training part (`examination.fit`).
    It says how likely something shown was to be looked at, and nothing of how likely it was to be shown at all.

    Assumes P(click) = e_k · r, and that an item's position says nothing of who looks at it.
    """

    log: Interactions
    deepest: int = 0  # positions from here on count as one; 0: each is its own
    add: float = 0.5  # clicks of an imagined item at every position, so that no e is 0

    name: ClassVar[str] = "position"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "positions"
    assumes: ClassVar[str] = (
        "that a click is a look at the position times the liking of the item, and that an item's position says "
        "nothing of who looks at it"
    )
    examination: dict[int, float] = field(init=False, repr=False)  # position → e, once fitted
    alike: float = field(init=False, repr=False)  # p of a test that all positions are examined alike

    def fit(self, train: Sequences) -> Self:
        """Learn e from the impressions of the training part."""
        placings = placings_of(self.log, training_impressions(self.log, train), self.deepest)
        wanted_K = np.isin(placings.position_K, self._positions(train.event_N))
        telling = placings.telling().linked(wanted_K)
        self.examination = dict(zip(telling.position_K.tolist(), examined(telling, self.add).tolist(), strict=True))
        self.alike = alike(telling)
        return self

    @property
    def doubt(self) -> str:
        """What is to be said where positions may differ by chance alone."""
        return "" if self.alike < CHANCE else f"Here positions may differ by chance alone (p = {self.alike:.2g})."

    def __call__(self, slots: Slots) -> Tensor:
        """θ of the slots' own events."""
        if slots.event_M is None:
            raise UnveilError("positions are known for events of the log only, and these slots are not")
        position_M, at_M = np.unique(self._positions(slots.event_M.cpu().numpy()), return_inverse=True)
        if strange := set(position_M.tolist()) - set(self.examination):
            raise UnveilError("nothing was shown at this position in the training part", found=min(strange))
        theta_M = np.array([self.examination[position] for position in position_M.tolist()], np.float32)[at_M]
        return torch.from_numpy(theta_M).to(slots.item_M.device)

    def of_all(self, slots: Slots) -> Tensor:
        """Not to be had."""
        raise of_events_alone("position")

    def _positions(self, row_N: NDArray[Any]) -> NDArray[Any]:
        assert self.log.position is not None
        return pooled(self.log.position[row_N], self.deepest)


def placings_of(log: Interactions, shown_N: NDArray[np.bool_], deepest: int) -> Placings:
    """The impressions among the rows `shown_N`, counted; a log that lacks what that takes is refused."""
    if log.position is None:
        raise UnveilError("this log has no positions", hint="Name the column with --position-col.")
    refuse_unless(deepest >= 0, "position.deepest", deepest, "0 or above")
    if log.clicked is None or log.clicked[shown_N].all():
        raise UnveilError(
            "this log has what users took and not what they left: what is placed where cannot be told from how "
            "often it is looked at",
            expected="a column that says of each impression whether it was clicked, with some that were not",
            hint="Name it with --clicked-col.",
        )
    bad_N = shown_N & (log.position < 0)
    if bad_N.any():
        rows, first = quantity(int(bad_N.sum()), "impression"), int(bad_N.argmax())
        raise UnveilError(
            "no position",
            where=f"{rows}, first row {first + 1} of the log",
            found=int(log.position[first]),
            expected="a whole number from 0",
        )
    return Placings.of(log.item[shown_N], log.position[shown_N], log.clicked[shown_N], deepest)
