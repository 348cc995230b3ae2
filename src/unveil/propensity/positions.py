"""θ from the position at which an event was shown: how often each position is examined, in the position-based model.

P(click | item i at position k) = e_k · r_i: the position is examined, and then the item attracts. Maximised is

    ℓ(e) = Σ_i Σ_k c_ik log( n_ik e_k / Σ_l n_il e_l ),    n: times shown, c: clicks,

the likelihood of where clicks fell given how many there were: r is not needed. It is concave in log e; its gradient has
mean 0 at the true e however rare clicks are. (EM learns an r_i of each item; those shown a few times bias e.)

Shapes: N rows of the log, M slots, P pairs (item, position) that occur, K positions, V items, D bootstrap draws.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc
from torch import Tensor

from unveil.data.interactions import Interactions, Sequences, rows_in_words
from unveil.data.slots import Slots
from unveil.errors import UnveilError, check_range
from unveil.propensity.base import Kind, OfEvents, Source, register
from unveil.propensity.impressions import training_impressions
from unveil.wording import quantity

Index = NDArray[np.int64]
Floats = NDArray[np.float64]

CHANCE = 0.05  # Differences between positions with p above this may be chance
_NAMED = 5  # Positions that a message names one by one
_STEPS, _FLAT = 50, 1e-10  # Newton steps at most, and the gradient, as a share of all clicks, at which to stop
_FAR, _HALVINGS = 3.0, 30  # The longest step in log e, and how often it is halved


@dataclass(frozen=True, eq=False)
class PositionCounts:
    """Impressions and clicks of each pair of an item and a position; `place_P` is an index into `position_K`."""

    item_P: Index
    place_P: Index
    shown_P: Floats
    clicked_P: Floats
    position_K: Index

    @classmethod
    def of(cls, log: Interactions, shown_N: NDArray[np.bool_], deepest: int) -> Self:
        """Count the impressions among the rows `shown_N`; positions from `deepest` on are one, unless it is 0."""
        if log.position is None:
            raise UnveilError("this log has no positions", hint="Name the column with --position-col.")
        check_range(deepest >= 0, "position.deepest", deepest, "0 or above")
        if log.clicked is None or log.clicked[shown_N].all():
            problem = "this log has clicks only, and no impressions without a click: examination cannot be estimated"
            expected = "a column that says of each impression whether it was clicked, with some that were not"
            raise UnveilError(problem, expected=expected, hint="Name it with --clicked-col.")
        bad_N = shown_N & (log.position < 0)
        if bad_N.any():
            where, found = rows_in_words(np.flatnonzero(bad_N), "impression"), int(log.position[bad_N][0])
            raise UnveilError("no position", where=where, found=found, expected="a whole number from 0")
        position_K, place_N = np.unique(_pooled(log.position[shown_N], deepest), return_inverse=True)
        key_N = log.item[shown_N].astype(np.int64) * len(position_K) + place_N
        key_P, pair_N = np.unique(key_N, return_inverse=True)
        item_P, place_P = np.divmod(key_P, len(position_K))
        shown_P, clicked_P = (_sum_by(pair_N, each_N) for each_N in (np.ones(len(pair_N)), log.clicked[shown_N]))
        return cls(item_P, place_P, shown_P, clicked_P, position_K.astype(np.int64))

    def by_position(self) -> tuple[Floats, Floats]:
        K = len(self.position_K)
        return _sum_by(self.place_P, self.shown_P, K), _sum_by(self.place_P, self.clicked_P, K)

    def informative(self) -> Self:
        """Only the items that were clicked and shown at several positions: no other is evidence about positions."""
        several_P = _sum_by(self.item_P, np.ones(len(self.item_P)))[self.item_P] > 1
        if not several_P.any():
            problem = "no item was shown at two positions: effects of position and of item cannot be separated"
            found = f"{quantity(len(self.position_K), 'position')}, {quantity(len(self.item_P), 'item')}"
            raise UnveilError(problem, found=found, expected="items that were shown at several positions")
        keep_P = several_P & (_sum_by(self.item_P, self.clicked_P)[self.item_P] > 0)
        if not keep_P.any():
            raise UnveilError("no item that was shown at two positions was ever clicked: positions cannot be compared")
        return self._where(keep_P)

    def connected(self, wanted_K: NDArray[np.bool_]) -> Self:
        """The positions that items connect, directly or through others; all `wanted_K` must be among them."""
        _, item_P = np.unique(self.item_P, return_inverse=True)
        K, V = len(self.position_K), int(item_P.max()) + 1
        edges = csr_array((np.ones(len(item_P)), (self.place_P, K + item_P)), shape=(K + V, K + V))
        part_K = connected_components(edges, directed=False)[1][:K]
        _, clicked_K = self.by_position()
        keep_K = part_K == _sum_by(part_K, clicked_K).argmax()
        if apart := self.position_K[wanted_K & ~keep_K].tolist():
            named = ", ".join(map(str, apart[:_NAMED])) + ", …" * (len(apart) > _NAMED)
            problem = "some positions share no clicked item with the others: they cannot be compared"
            hint = "Count all positions from N on as one: propensity.deepest=N, or --deepest N."
            raise UnveilError(problem, found=f"position {named}", hint=hint)
        kept = self._where(keep_K[self.place_P])
        return replace(kept, place_P=(np.cumsum(keep_K) - 1)[kept.place_P], position_K=self.position_K[keep_K])

    def resampled(self, rng: np.random.Generator) -> Self:
        """A Poisson bootstrap: each impression counts a Poisson(1) number of times, drawn as sums."""
        clicked_P = rng.poisson(self.clicked_P).astype(np.float64)
        shown_P = clicked_P + rng.poisson(self.shown_P - self.clicked_P)
        return replace(self, shown_P=shown_P, clicked_P=clicked_P)._where(shown_P > 0)

    def _where(self, keep_P: NDArray[np.bool_]) -> Self:
        columns = {name: getattr(self, name)[keep_P] for name in ("item_P", "place_P", "shown_P", "clicked_P")}
        return replace(self, **columns)


def _pooled(position_N: NDArray[Any], deepest: int) -> NDArray[Any]:
    return np.minimum(position_N, deepest) if deepest else position_N


def _sum_by(index: NDArray[Any], value: NDArray[Any], size: int = 0) -> Floats:
    return np.asarray(np.bincount(index, weights=value, minlength=size), np.float64)


def examination(counts: PositionCounts, add: float) -> Floats:
    """e_K relative to the position that is examined most, which has 1.

    One more item, clicked `add` times at every position, keeps e above 0 and shrinks those with few clicks together.
    """
    check_range(add > 0, "position.add", add, "above 0")
    likelihood = _Likelihood(counts, add)
    alpha_K: Floats = np.zeros(len(counts.position_K))
    for _ in range(_STEPS):
        gradient_K, information_KK = likelihood.slope(alpha_K)
        if np.abs(gradient_K).max() <= _FLAT * likelihood.clicks:
            break
        alpha_K = _line_search(likelihood, alpha_K, np.linalg.solve(information_KK, gradient_K))
    return np.asarray(np.exp(alpha_K))


def p_equal(counts: PositionCounts) -> float:
    """p of a score test that all positions are examined alike: at e = 1, gᵀ I⁻¹ g is χ² with K − 1 degrees.

    I is that of rare clicks; if they are not rare, p is too large, not too small.
    """
    gradient_K, information_KK = _Likelihood(counts, 0.0).slope(np.zeros(len(counts.position_K)))
    return float(chdtrc(len(gradient_K) - 1, float(gradient_K @ np.linalg.solve(information_KK, gradient_K))))


def bootstrap(counts: PositionCounts, add: float, draws: int, rng: np.random.Generator) -> Floats:
    """e_DK of `draws` Poisson bootstraps, as if impressions were independent: those of one page are not quite."""
    return np.stack([examination(counts.resampled(rng), add) for _ in range(draws)])


class _Likelihood:
    """ℓ of α = log e, with the added item as the last."""

    def __init__(self, counts: PositionCounts, add: float) -> None:
        K = len(counts.position_K)
        _, item_P = np.unique(counts.item_P, return_inverse=True)
        every_K, last = np.ones(K), int(item_P.max(initial=-1)) + 1
        self.item_P = np.concatenate([item_P, np.full(K, last)])
        self.place_P = np.concatenate([counts.place_P, np.arange(K)])
        self.shown_P = np.concatenate([counts.shown_P, every_K])
        self.clicked_P = np.concatenate([counts.clicked_P, add * every_K])
        self.clicked_V = _sum_by(self.item_P, self.clicked_P)
        self.clicks = float(self.clicked_V.sum())
        self.shape = (last + 1, K)

    def __call__(self, alpha_K: Floats) -> float:
        """ℓ, less what does not depend on e."""
        total_V = _sum_by(self.item_P, self._weight(alpha_K))
        return float(self.clicked_P @ alpha_K[self.place_P] - self.clicked_V @ np.log(total_V))

    def slope(self, alpha_K: Floats) -> tuple[Floats, Floats]:
        """Its gradient, and minus its second derivatives; along equal α, which changes nothing, made regular."""
        weight_P = self._weight(alpha_K)
        share_P = weight_P / _sum_by(self.item_P, weight_P)[self.item_P]
        expected_P = self.clicked_V[self.item_P] * share_P
        gradient_K, expected_K = (_sum_by(self.place_P, each_P) for each_P in (self.clicked_P - expected_P, expected_P))
        share_VK, expected_VK = (
            csr_array((each_P, (self.item_P, self.place_P)), shape=self.shape) for each_P in (share_P, expected_P)
        )
        information_KK = np.diag(expected_K) - (share_VK.T @ expected_VK).toarray()
        return gradient_K, information_KK + expected_K.mean() / self.shape[1]

    def _weight(self, alpha_K: Floats) -> Floats:
        return np.asarray(self.shown_P * np.exp(alpha_K[self.place_P]))


def _line_search(likelihood: _Likelihood, alpha_K: Floats, step_K: NDArray[Any]) -> Floats:
    """As much of a step, halved and halved, as does not decrease ℓ; the largest α is 0."""
    step_K = step_K / max(1.0, np.abs(step_K).max() / _FAR)
    before = likelihood(alpha_K)
    for halvings in range(_HALVINGS):
        after_K = alpha_K + step_K * 0.5**halvings
        if likelihood(after_K) >= before:
            return np.asarray(after_K - after_K.max())
    return alpha_K


@register
@dataclass
class Position(OfEvents):
    """θ of an event is e_k: how often its position is examined, relative to the one that is examined most.

    It says how likely something shown was to be looked at, and nothing of how likely it was to be shown at all.
    Assumes P(click) = e_k · r_i, and that an item's position is independent of who looks at it.
    """

    log: Interactions
    deepest: int = 0  # positions from here on count as one; 0: each is its own
    add: float = 0.5  # clicks of an added item at every position, so that no e is 0

    name: ClassVar[str] = "position"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "positions"
    records: ClassVar[str] = "position"
    assumes: ClassVar[str] = (
        "that a click is examination of the position times attraction of the item, and that an item's position is "
        "independent of who looks at it"
    )
    examination: dict[int, float] = field(init=False, repr=False)  # position → e, once fitted
    p_equal: float = field(init=False, repr=False)  # p of a test that all positions are examined alike

    def fit(self, train: Sequences) -> Self:
        counts = PositionCounts.of(self.log, training_impressions(self.log, train), self.deepest)
        counts = counts.informative().connected(np.isin(counts.position_K, self._positions(train.event_N)))
        self.examination = dict(zip(counts.position_K.tolist(), examination(counts, self.add).tolist(), strict=True))
        self.p_equal = p_equal(counts)
        return self

    @property
    def caveat(self) -> str:
        return "" if self.p_equal < CHANCE else f"Here positions may differ by chance alone (p = {self.p_equal:.2g})."

    def __call__(self, slots: Slots) -> Tensor:
        position_M, at_M = np.unique(self._positions(self.rows(slots)), return_inverse=True)
        if new := set(position_M.tolist()) - set(self.examination):
            raise UnveilError("nothing was shown at this position in the training part", found=min(new))
        theta_M = np.array([self.examination[position] for position in position_M.tolist()], np.float32)[at_M]
        return torch.from_numpy(theta_M).to(slots.item_M.device)

    def _positions(self, row_N: NDArray[Any]) -> NDArray[Any]:
        assert self.log.position is not None
        return _pooled(self.log.position[row_N], self.deepest)
