"""Propensities learnt from rows that a random policy showed: the density ratio of standard against random clicks.

Shapes: V items, C those that the random policy shows, M slots.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from torch import Tensor

from unveil.data.indexing import UNKNOWN, read_ids
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.base import Kind, Source, both_kinds
from unveil.propensity.popularity import DampedStatic, DampedTemporal


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
