"""Popularity in the place of exposure: the paper's estimates from the training part (section 5.2).

Popularity is exposure × relevance: a proxy, and never to be called unbiased. Shapes: N events, M slots, V items,
T steps and C cells that occur.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError, refuse_unless
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.factored import Blocks, Factored
from unveil.propensity.factors import Factors


@dataclass
class Popularity:
    """Counts of what the model is trained on: the last `window` training events of each user (None: all).

    `add` is added to every count (α of add-α smoothing). Without it a cell that never occurs would get 0, which no
    propensity may be: it gets the estimate of the rarest cell that does occur. A slot of the training part always
    falls in a cell that occurs, so this floor never touches the paper's estimate there.
    """

    window: int | None = None
    add: float = 0.0

    name: ClassVar[str]
    source: ClassVar[Source] = "nothing"

    def __post_init__(self) -> None:
        refuse_unless(self.window is None or self.window >= 1, f"{self.name}.window", self.window, "at least 1")
        refuse_unless(0 <= self.add < float("inf"), f"{self.name}.add", self.add, "0 or more")

    def _counted(self, train: Sequences) -> Sequences:
        recent = train if self.window is None else train.recent(self.window)
        if not len(recent):
            raise UnveilError("popularity cannot be counted: the training part has no events")
        return recent


@register
@dataclass
class StaticPopularity(Popularity):
    """θ̂_i = Σ_t θ̂_it = count of item i / count of all interactions (eq. of θ̂_si), the same for all users."""

    name: ClassVar[str] = "popularity-static"
    kind: ClassVar[Kind] = "static"
    _theta_V: Tensor = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        """Count."""
        count_V = self._counted(train).count_V + self.add
        count_V = np.maximum(count_V, count_V[count_V > 0].min())
        self._theta_V = torch.from_numpy((count_V / self._total(train)).astype(np.float32))
        return self

    def _total(self, train: Sequences) -> float:
        return len(self._counted(train)) + self.add * train.n_items

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂_i of the slots' items."""
        return self._theta_V.to(slots.item_M.device)[slots.item_M]

    def of_all(self, slots: Slots) -> Tensor:
        """The same row for every slot, as a view."""
        return self._theta_V.to(slots.item_M.device).expand(len(slots), -1)


@register
@dataclass
class TemporalPopularity(Popularity):
    """θ̂_it = count of item i at step t / count of all interactions (eq. of θ̂_sit), the same for all users.

    With `half_width` h each count is spread over its step and the h steps on either side, in weights that fall
    linearly with the distance; what would fall off the ends stays within them, so no mass is lost. A step outside
    those that occur in training is read at the nearest one that does.
    """

    half_width: int = 0

    name: ClassVar[str] = "popularity-temporal"
    kind: ClassVar[Kind] = "temporal"
    _first: int = field(init=False, repr=False)
    _floor: float = field(init=False, repr=False)
    _theta_TV: Any = field(init=False, repr=False)  # sparse: θ̂ less what `add` alone gives
    _cell_C: NDArray[np.int64] = field(init=False, repr=False)  # t · V + i of each cell that occurs, in order

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(self.half_width >= 0, f"{self.name}.half_width", self.half_width, "0 or more")

    def fit(self, train: Sequences) -> Self:
        """Count, and spread over neighbouring steps."""
        counted = self._counted(train)
        occurring_TV = _occurring(counted)
        step = np.flatnonzero(np.diff(occurring_TV.indptr))
        self._first = int(step[0])
        occurring_TV = occurring_TV[self._first : int(step[-1]) + 1]
        steps, items = occurring_TV.shape
        count_TV = kernel(steps, self.half_width) @ occurring_TV
        total = len(counted) + self.add * steps * items
        self._theta_TV = count_TV.tocsr() / total
        self._theta_TV.sort_indices()
        self._cell_C = _cells(self._theta_TV)
        self._floor = self.add / total or float(self._theta_TV.data.min())
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂_it of the slots' items at their own steps."""
        asked_M = self._rows(slots) * self._theta_TV.shape[1] + slots.item_M.cpu().numpy()
        at_M = np.searchsorted(self._cell_C[:-1], asked_M)  # the last stands for all beyond it
        theta_M = np.where(self._cell_C[at_M] == asked_M, self._theta_TV.data[at_M], 0.0)
        return self._completed(theta_M).to(slots.item_M.device)

    def of_all(self, slots: Slots) -> Tensor:
        """θ̂_it of all items at the slots' own steps."""
        row_T, nth_M = np.unique(self._rows(slots), return_inverse=True)
        theta_TV = self._completed(self._theta_TV[row_T].toarray())
        return theta_TV[torch.from_numpy(nth_M)].to(slots.item_M.device)

    def _rows(self, slots: Slots) -> NDArray[np.int64]:
        last = self._theta_TV.shape[0] - 1
        return np.asarray((slots.step_M.cpu().numpy() - self._first).clip(0, last))

    def _completed(self, theta: NDArray[np.float64]) -> Tensor:
        theta = theta + self._floor if self.add else np.where(theta > 0, theta, self._floor)
        return torch.from_numpy(theta.astype(np.float32))


def _occurring(counted: Sequences) -> Any:
    """How often each item occurs at each step, sparse; counted a block at a time, since events may lie on the disk."""
    count_TV = sparse.csr_matrix((counted.n_steps, counted.n_items), dtype=np.int64)
    for part in counted.blocks():
        one_B = np.ones(len(part), np.int64)
        count_TV = count_TV + sparse.csr_matrix((one_B, (part.step_N, part.item_N)), shape=count_TV.shape)
    return count_TV


def _cells(theta_TV: Any) -> NDArray[np.int64]:
    """The flat index of every stored cell, in the order of storage."""
    row_C = np.repeat(np.arange(theta_TV.shape[0]), np.diff(theta_TV.indptr))
    return np.asarray(row_C * theta_TV.shape[1] + theta_TV.indices, np.int64)


def kernel(steps: int, half_width: int) -> Any:
    """K_TT, sparse: K[t', t] ∝ 1 − |t' − t| / (h + 1), each column summing to one within the steps there are."""
    near = range(-min(half_width, steps - 1), min(half_width, steps - 1) + 1)
    height = [np.full(steps - abs(d), 1 - abs(d) / (half_width + 1)) for d in near]
    K_TT = sparse.diags(height, list(near), format="csr")
    return K_TT @ sparse.diags(1 / np.asarray(K_TT.sum(0)).ravel())


def refuse_exponent(exponent: float, where: str) -> None:
    """An exponent is at least 0: all alike; at 1 it is popularity itself."""
    refuse_unless(0 <= exponent < float("inf"), f"{where}.exponent", exponent, "0 or more")


@register
@dataclass
class DampedStatic(StaticPopularity):
    """θ̂_i ∝ popularity_i^exponent, 1 for the most popular: the paper's weights on real data, as a propensity.

    Assumes log exposure = exponent · log popularity + what averages out over items. Nothing in the log tells the
    exponent; where there are ratings, `rated-static` finds it.
    """

    exponent: float = 0.5

    name: ClassVar[str] = "damped-static"
    kind: ClassVar[Kind] = "static"
    assumes: ClassVar[str] = "that exposure is popularity to a power that somebody chose"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_exponent(self.exponent, self.name)

    def fit(self, train: Sequences) -> Self:
        """Count and damp."""
        super().fit(train)
        self._theta_V = (self._theta_V / self._theta_V.max()) ** self.exponent
        return self


@register
@dataclass
class DampedTemporal(TemporalPopularity):
    """θ̂_it ∝ popularity_it^exponent, 1 for the most popular of all items and steps.

    `tempered` with popularity-temporal and static = 1 takes the exponent that swaps within histories bear out.
    """

    exponent: float = 0.5

    name: ClassVar[str] = "damped-temporal"
    kind: ClassVar[Kind] = "temporal"
    assumes: ClassVar[str] = DampedStatic.assumes
    _largest: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_exponent(self.exponent, self.name)

    def fit(self, train: Sequences) -> Self:
        """Count, and find the largest count."""
        super().fit(train)
        self._largest = float(self._theta_TV.data.max()) + (self._floor if self.add else 0.0)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂ of the slots' items at their own steps."""
        return self._damped(super().__call__(slots))

    def of_all(self, slots: Slots) -> Tensor:
        """θ̂ of all items at the slots' own steps."""
        return self._damped(super().of_all(slots))

    def _damped(self, theta: Tensor) -> Tensor:
        return (theta / self._largest).clamp_max(1.0) ** self.exponent


Counts = NDArray[np.float64]
#: Of the prior: from movements of any size to none that could be seen.
_PRECISIONS = np.geomspace(0.1, 1e6, 71)
#: The largest θ̂: its logit must be finite.
_BELOW_ONE = 1 - 1e-6


@register
@dataclass
class Timing(Factored):
    """θ̂_it ∝ ρ_ib = (n_ib + κ) / (m_ib + κ): takes of item i in block b over what its share of all takes would give.

    m_ib = n_b · n_i / n. An item's mean stays out of it, so that no static relevance is ever divided out, and no static
    exposure either. ρ is the posterior mean of n ~ Poisson(m ρ), ρ ~ Gamma(κ, κ), with the κ that makes the counts most
    likely: where they scatter no more than chance lets them, κ is as good as infinite and θ̂ the same for all.

    Assumes that what moves with the step, for all users together, is exposure and not taste: P(i | s, t) ∝ θ_it e^f_si.
    """

    window: int | None = None
    blocks: int = 10

    name: ClassVar[str] = "timing"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "nothing"
    assumes: ClassVar[str] = (
        "that tastes keep still: what moves with the step is exposure, and nothing else is looked at"
    )
    precision: float = field(init=False, repr=False)  # κ

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        count_CV = np.zeros((blocks.count, train.n_items))
        np.add.at(count_CV, (blocks.at(train.step_N), train.item_N), 1)
        expected_CV = count_CV.sum(1, keepdims=True) * count_CV.sum(0) / count_CV.sum()
        self.precision = most_likely(count_CV, expected_CV)
        moved_CV = (count_CV + self.precision) / (expected_CV + self.precision)
        theta_CV = moved_CV / moved_CV.max() * _BELOW_ONE
        psi_VC = np.log(theta_CV / (1 - theta_CV)).T
        return Factors.of(np.ones((train.n_users, blocks.count)), psi_VC, np.eye(blocks.count))


def most_likely(count_CV: Counts, expected_CV: Counts) -> float:
    """The κ at which the counts, negative binomial around what is expected, are most likely."""
    there = expected_CV > 0
    n, m = count_CV[there], expected_CV[there]

    def log_likelihood(k: float) -> float:
        return float((gammaln(n + k) - gammaln(k) + k * np.log(k / (k + m)) + n * np.log(m / (k + m))).sum())

    return float(max(_PRECISIONS, key=log_likelihood))
