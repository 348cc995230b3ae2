"""ITPS with weights that are cut where the variance they cost outweighs the bias of cutting them."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.inverse import InversePropensity
from unveil.estimators.itps import ITPS
from unveil.estimators.learning import events, weights_of


@register
@dataclass(frozen=True, eq=False)
class ShrunkITPS(InversePropensity):
    """w = min(1 / θ_sit, λ), the weights of ITPS (eq. of L_ITPS) cut at λ = n · E[(1/θ − λ)⁺].

    For losses between 0 and 1 and weights g(w) ≤ w, the squared bias of a mean over n slots is at most E[w − g]² and
    its variance at most E[g²]/n. No g makes the sum of the two smaller than this cut: setting the derivative at each w
    to zero gives g = n · E[w − g], one number for all w above it. As n grows λ reaches the largest weight: consistent
    where ITPS is.

    n is the number of slots on which one answer rests (`support`), not the whole log's: by default the training events
    of an average item.
    """

    support: float = 0.0  # n; 0: events per item that occurs

    name: ClassVar[str] = "itps-shrunk"
    needs: ClassVar[Need] = "temporal"
    cuts: ClassVar[bool] = True
    cut: float = field(init=False, repr=False, default=float("inf"))

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(0 <= self.support < float("inf"), f"{self.name}.support", self.support, "0 or more")

    @property
    def ceiling(self) -> float:
        """The largest weight."""
        return min(self.cut, super().ceiling)

    def fit(self, train: Sequences) -> Self:
        """Find λ from the weights of all training events."""
        plain = ITPS(self.propensity, self.clip, self.exponent)
        support = self.support or len(train) / max(len(np.unique(train.item_N)), 1)
        weight_N = weights_of(plain, events(train)).numpy().astype(np.float64)
        object.__setattr__(self, "cut", float(f"{best_cut(weight_N, support):.6g}"))  # the same on every machine
        return self

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, weighted by no more than λ."""
        plain = super().__call__(slots)
        return Signal(plain.target_M, plain.weight_M.clamp_max(self.cut))


def best_cut(weight_N: NDArray[np.float64], support: float) -> float:
    """The one λ with λ = n · mean (w − λ)⁺: its left side rises and its right side falls."""
    down_N = np.sort(weight_N)[::-1]
    if not len(down_N):
        return float("inf")
    above_N = np.arange(1, len(down_N) + 1) * (support / len(down_N))  # n · P(w > λ) with so many above
    cut_N = np.cumsum(down_N) * (support / len(down_N)) / (1 + above_N)
    return float(cut_N.max())
