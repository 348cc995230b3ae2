"""Popularity in the place of exposure (section 5.2 of the paper), and variants: exposure × relevance, so not unbiased.

Shapes: N events, M slots, V items, T steps, C cells that occur, in `Timing` blocks of steps, in the density ratio items
that a random policy shows.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, gammaln, log_expit
from torch import Tensor

from unveil.data.indexing import UNKNOWN, read_ids
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import AtLeastOne, NotNegative, UnveilError, check_ranges
from unveil.propensity.base import Kind, Source, both_kinds, register
from unveil.propensity.factors import Blocks, Factored, Factors, Values

#: Candidates for κ of `Timing`: from changes of any size to none that could be seen; and its largest θ̂.
_PRECISIONS, _BELOW_ONE = np.geomspace(0.1, 1e6, 71), 1 - 1e-6


@dataclass
class Popularity:
    """Counts of what the model is trained on: the last `window` training events of each user (None: all).

    `add` is added to every count (α of add-α smoothing). Without it a cell that never occurs, as no training slot's
    does, has the estimate of the rarest that does: θ is never 0.
    """

    window: AtLeastOne | None = None
    add: NotNegative = 0.0

    name: ClassVar[str]
    source: ClassVar[Source] = "nothing"

    def __post_init__(self) -> None:
        check_ranges(self, self.name)

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
        counted = self._counted(train)
        count_V = counted.count_V + self.add
        count_V = np.maximum(count_V, count_V[count_V > 0].min())
        theta_V = count_V / (len(counted) + self.add * train.n_items)
        self._theta_V = torch.from_numpy(theta_V.astype(np.float32))
        return self

    def __call__(self, slots: Slots) -> Tensor:
        return self._theta_V.to(slots.item_M.device)[slots.item_M]

    def of_all(self, slots: Slots) -> Tensor:
        return self._theta_V.to(slots.item_M.device).expand(len(slots), -1)


@register
@dataclass
class TemporalPopularity(Popularity):
    """θ̂_it = count of item i at step t / count of all interactions (eq. of θ̂_sit), the same for all users.

    With `half_width` h each count is spread over its step and the h steps on either side, in weights that fall
    linearly; no mass is lost at the ends. A step outside those that occur in training is read at the nearest one that
    does.
    """

    half_width: Annotated[int, "0 or more"] = 0

    name: ClassVar[str] = "popularity-temporal"
    kind: ClassVar[Kind] = "temporal"
    _first: int = field(init=False, repr=False)
    _floor: float = field(init=False, repr=False)
    _theta_TV: Any = field(init=False, repr=False)  # sparse: θ̂ less what `add` alone gives
    _cell_C: NDArray[np.int64] = field(init=False, repr=False)  # t · V + i of each cell that occurs, in order

    def fit(self, train: Sequences) -> Self:
        counted = self._counted(train)
        count_TV = _counts(counted)
        step = np.flatnonzero(np.diff(count_TV.indptr))
        self._first = int(step[0])
        count_TV = count_TV[self._first : int(step[-1]) + 1]
        steps, items = count_TV.shape
        total = len(counted) + self.add * steps * items
        self._theta_TV = (kernel(steps, self.half_width) @ count_TV).tocsr() / total
        self._theta_TV.sort_indices()
        row_C = np.repeat(np.arange(steps), np.diff(self._theta_TV.indptr))
        self._cell_C = np.asarray(row_C * items + self._theta_TV.indices, np.int64)
        self._floor = self.add / total or float(self._theta_TV.data.min())
        return self

    def __call__(self, slots: Slots) -> Tensor:
        cell_M = self._rows(slots) * self._theta_TV.shape[1] + slots.item_M.cpu().numpy()
        at_M = np.searchsorted(self._cell_C[:-1], cell_M)  # the last stands for all beyond it
        theta_M = np.where(self._cell_C[at_M] == cell_M, self._theta_TV.data[at_M], 0.0)
        return self._smoothed(theta_M).to(slots.item_M.device)

    def of_all(self, slots: Slots) -> Tensor:
        row_T, nth_M = np.unique(self._rows(slots), return_inverse=True)
        return self._smoothed(self._theta_TV[row_T].toarray())[torch.from_numpy(nth_M)].to(slots.item_M.device)

    def _rows(self, slots: Slots) -> NDArray[np.int64]:
        return np.asarray((slots.step_M.cpu().numpy() - self._first).clip(0, self._theta_TV.shape[0] - 1))

    def _smoothed(self, theta: Values) -> Tensor:
        theta = theta + self._floor if self.add else np.where(theta > 0, theta, self._floor)
        return torch.from_numpy(theta.astype(np.float32))


def _counts(counted: Sequences) -> Any:
    """How often each item occurs at each step, sparse; counted a block at a time, since events may lie on the disk."""
    count_TV = sparse.csr_matrix((counted.n_steps, counted.n_items), dtype=np.int64)
    for part in counted.blocks():
        one_B = np.ones(len(part), np.int64)
        count_TV = count_TV + sparse.csr_matrix((one_B, (part.step_N, part.item_N)), shape=count_TV.shape)
    return count_TV


def kernel(steps: int, half_width: int) -> Any:
    """K_TT, sparse: K[t', t] ∝ 1 − |t' − t| / (h + 1), each column summing to one within the steps there are."""
    near = range(-min(half_width, steps - 1), min(half_width, steps - 1) + 1)
    height = [np.full(steps - abs(d), 1 - abs(d) / (half_width + 1)) for d in near]
    K_TT = sparse.diags(height, list(near), format="csr")
    return K_TT @ sparse.diags(1 / np.asarray(K_TT.sum(0)).ravel())


@register
@dataclass
class DampedStatic(StaticPopularity):
    """θ̂_i ∝ popularity_i^exponent, 1 for the most popular: the paper's weights on real data, as a propensity.

    Assumes log exposure = exponent · log popularity + noise. Only ratings tell the exponent: see `rated-static`.
    """

    exponent: NotNegative = 0.5  # 0: all alike; 1: popularity

    name: ClassVar[str] = "damped-static"
    assumes: ClassVar[str] = "that exposure is popularity to a given power"

    def fit(self, train: Sequences) -> Self:
        super().fit(train)
        self._theta_V = (self._theta_V / self._theta_V.max()) ** self.exponent
        return self


@register
@dataclass
class DampedTemporal(TemporalPopularity):
    """θ̂_it ∝ popularity_it^exponent, 1 for the most popular of all items and steps."""

    exponent: NotNegative = 0.5

    name: ClassVar[str] = "damped-temporal"
    assumes: ClassVar[str] = DampedStatic.assumes
    _largest: float = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        super().fit(train)
        self._largest = float(self._theta_TV.data.max()) + (self._floor if self.add else 0.0)
        return self

    def _smoothed(self, theta: Values) -> Tensor:
        return (super()._smoothed(theta) / self._largest).clamp_max(1.0) ** self.exponent


@register
@dataclass(kw_only=True)
class Timing(Factored):
    """θ̂_it ∝ ρ_ib = (n_ib + κ) / (m_ib + κ): interactions of item i in block b over those expected from its share.

    m_ib = n_b · n_i / n, which leaves out what is static, relevance or exposure. ρ: mean of n ~ Poisson(m ρ) and
    ρ ~ Gamma(κ, κ), κ by maximum likelihood; where counts vary by chance alone, it is as good as infinite.
    Assumes P(i | s, t) ∝ θ_it e^f_si: what changes with the step, for all users together, is exposure, not taste.
    """

    name: ClassVar[str] = "timing"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "nothing"
    assumes: ClassVar[str] = "that preferences are constant: what changes with the step is exposure"
    precision: float = field(init=False, repr=False)  # κ

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        count_CV = np.zeros((blocks.count, train.n_items))
        np.add.at(count_CV, (blocks.at(train.step_N), train.item_N), 1)
        expected_CV = count_CV.sum(1, keepdims=True) * count_CV.sum(0) / count_CV.sum()
        self.precision = precision(count_CV, expected_CV)
        ratio_CV = (count_CV + self.precision) / (expected_CV + self.precision)
        theta_CV = ratio_CV / ratio_CV.max() * _BELOW_ONE
        psi_VC = np.log(theta_CV / (1 - theta_CV)).T
        return Factors.of(np.ones((train.n_users, blocks.count)), psi_VC, np.eye(blocks.count))


def precision(count_CV: Values, expected_CV: Values) -> float:
    """The κ of maximum likelihood, the counts negative binomial around the expected ones."""
    n, m = count_CV[expected_CV > 0], expected_CV[expected_CV > 0]

    def log_likelihood(k: float) -> float:
        return float((gammaln(n + k) - gammaln(k) + k * np.log(k / (k + m)) + n * np.log(m / (k + m))).sum())

    return float(max(_PRECISIONS, key=log_likelihood))


@dataclass
class _DensityRatio:
    """θ̂ ∝ popularity^β, 1 for the most popular, β by a logistic regression of standard against random clicks:

    P(standard | click on i) = σ(a + β x_i),   x_i = log popularity_i,

    each kind of click with half of the weight. Of random clicks the density is ∝ appeal_i, of standard clicks
    ∝ θ_i appeal_i, and their ratio θ_i ∝ e^(β x_i). β below 0, where popularity is less than appeal, counts as 0.
    """

    log: Interactions
    slice: str | None = None  # random rows: user_id, item_id and, if known, label; of a log with is_rand those alone
    candidates: str | None = None  # ids of the items that are shown at random, one a line; else all of the log

    name: ClassVar[str]
    kind: ClassVar[Kind]
    source: ClassVar[Source] = "log"
    assumes: ClassVar[str] = "that exposure is popularity to a power, which random rows of like users tell"
    exponent: float = field(init=False, repr=False)
    _damped: DampedStatic | DampedTemporal = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        if not self.slice:
            hint = "Pass a file of clicks on items that were shown at random: propensity.slice=FILE."
            raise UnveilError(f"the propensity {self.name!r} needs random rows", hint=hint)
        random = Interactions.read(self.slice, even_one=True)
        random = (random if random.randomised is None else random.where(random.randomised)).interacted()
        known = self.log.items.index
        item_N, pool_C = known(random.items.ids)[random.item], np.arange(train.n_items, dtype=np.int32)
        if self.candidates:
            pool_C = np.unique(known(read_ids(Path(self.candidates), "item")))
            pool_C = pool_C[pool_C != UNKNOWN]
        item_N = item_N[np.isin(item_N, pool_C)]
        count_C = train.count_V[pool_C]
        if not len(item_N) or not count_C.any():
            raise UnveilError("no random row is of an item of the log that is chosen in it, too", where=self.slice)
        random_C = np.bincount(item_N, minlength=train.n_items)[pool_C]
        self.exponent = max(0.0, density_ratio(np.log(np.maximum(count_C, 1)), count_C, random_C))
        damped = DampedStatic if self.kind == "static" else DampedTemporal
        self._damped = damped(exponent=self.exponent).fit(train)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        return self._damped(slots)

    def of_all(self, slots: Slots) -> Tensor:
        return self._damped.of_all(slots)


DensityRatioStatic, DensityRatioTemporal = both_kinds("density-ratio", _DensityRatio)


def density_ratio(x_C: NDArray[np.float64], standard_C: NDArray[np.int64], random_C: NDArray[np.int64]) -> float:
    """β of greatest likelihood Σ_i s_i / Σ s · log σ(a + β x_i) + r_i / Σ r · log σ(−a − β x_i)."""
    s_C, r_C = standard_C / standard_C.sum(), random_C / random_C.sum()

    def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logit_C = theta[0] + theta[1] * x_C
        by_logit_C = r_C * expit(logit_C) - s_C * expit(-logit_C)
        likelihood = float(s_C @ log_expit(logit_C) + r_C @ log_expit(-logit_C))
        return -likelihood, np.array([by_logit_C.sum(), by_logit_C @ x_C])

    return float(minimize(loss, np.zeros(2), jac=True, method="BFGS").x[1])
