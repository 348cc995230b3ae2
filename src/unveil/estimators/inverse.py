"""Inverse propensity weighting: IPS, ITPS, ITPS with shrunk weights; clips as shares of the events; diagnostics."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import NotNegative, Share, UnveilError
from unveil.estimators.base import Checked, Estimator, Need, Signal, blocks, events, register, weights_of
from unveil.propensity.base import PropensityModel
from unveil.propensity.weights import WeightDiagnostics, diagnose_parts, inverse

CLIP = "clip"


def share_of(clip: object, where: str = f"estimator.{CLIP}") -> float | None:
    """The share in a clip such as "5%", which bounds the weights of the 5% of events least exposed; else None."""
    if not isinstance(clip, str) or not clip.endswith("%"):
        return None
    try:
        share = float(clip.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        expected = "a share of the events above 0% and below 100%, such as 5%"
        raise UnveilError("not a valid value", where=where, found=clip, expected=expected)
    return share


def settled(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an estimator that need no log: all but a clip that is a share."""
    return {name: value for name, value in options.items() if name != CLIP or share_of(value) is None}


@dataclass(frozen=True, eq=False)
class InversePropensity(Checked):
    """w = max(θ, clip)^−exponent. A clip above 0 or an exponent below 1 trades bias for variance.

    Self-normalised, the risk is divided by the sum of the weights: biased by a term that vanishes with the number of
    slots in a batch, and free of the scale of θ.
    """

    propensity: PropensityModel
    clip: Share = 0.0
    exponent: NotNegative = 1.0
    self_normalised: bool = False

    cuts: ClassVar[bool] = False  # whether it chooses by itself where to cut its weights, and needs no clip

    @property
    def ceiling(self) -> float:
        """The largest weight that the clip allows; without an exponent all weights are 1, and none is clipped."""
        return self.clip**-self.exponent if self.clip and self.exponent else float("inf")

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, self.inverse(slots))

    def inverse(self, slots: Slots) -> Tensor:
        return inverse(self.propensity(slots), self.clip, self.exponent)


@register
@dataclass(frozen=True, eq=False)
class IPS(InversePropensity):
    """w = 1 / θ_si, the static propensity (eq. of L_IPS).

    Where the choice does not depend on exposure: unbiased if and only if θ does not change with the step (Proposition
    2), for any item that may be chosen.
    """

    name: ClassVar[str] = "ips"
    needs: ClassVar[Need] = "static"


@register
@dataclass(frozen=True, eq=False)
class ITPS(InversePropensity):
    """w = 1 / θ_sit, the propensity at the slot's own step (eq. of L_ITPS).

    Unbiased (Proposition 3) where the choice does not depend on what is exposed, and there is no clip.
    """

    name: ClassVar[str] = "itps"
    needs: ClassVar[Need] = "temporal"


@register
@dataclass(frozen=True, eq=False)
class ShrunkITPS(InversePropensity):
    """w = min(1 / θ_sit, λ), the weights of ITPS (eq. of L_ITPS) cut at λ = n · E[(1/θ − λ)⁺].

    It minimises the bound on the mean squared error of a mean over n slots of losses in [0, 1]: E[w − g]² + E[g²]/n
    over weights g(w) ≤ w is least where g = n · E[w − g] for all w above it. Consistent where ITPS is: λ grows with n.
    n is `support`, by default the training events of an average item.
    """

    support: NotNegative = 0.0  # n; 0: events per item that occurs

    name: ClassVar[str] = "itps-shrunk"
    needs: ClassVar[Need] = "temporal"
    cuts: ClassVar[bool] = True
    cut: float = field(init=False, repr=False, default=float("inf"))

    @property
    def ceiling(self) -> float:
        return min(self.cut, super().ceiling)

    def fit(self, train: Sequences) -> Self:
        plain = ITPS(self.propensity, self.clip, self.exponent)
        support = self.support or len(train) / max(len(np.unique(train.item_N)), 1)
        weight_N = weights_of(plain, events(train)).numpy().astype(np.float64)
        object.__setattr__(self, "cut", float(f"{best_cut(weight_N, support):.6g}"))  # the same on every machine
        return self

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, self.inverse(slots).clamp_max(self.cut))


def best_cut(weight_N: NDArray[np.float64], support: float) -> float:
    """The λ with λ = n · mean (w − λ)⁺."""
    down_N = np.sort(weight_N)[::-1]
    if not len(down_N):
        return float("inf")
    above_N = np.arange(1, len(down_N) + 1) * (support / len(down_N))  # n · P(w > λ) with so many above
    cut_N = np.cumsum(down_N) * (support / len(down_N)) / (1 + above_N)
    return float(cut_N.max())


def weight_diagnostics(estimator: Estimator, slots: Slots) -> WeightDiagnostics | None:
    """Of these slots; None if the weights do not come from a propensity, or are not its only use."""
    if estimator.needs not in ("static", "temporal") or not len(slots):
        return None
    first = estimator(slots.part(0, 1))
    weighted, imputed = first.weighted, first.imputed_MV is not None
    del first  # the weights of one block are held at a time
    if not weighted:
        return None
    weights = (estimator(part).weight_M for part in blocks(slots))
    if not isinstance(estimator, InversePropensity):
        return diagnose_parts(weights, float("inf"))
    found = diagnose_parts(weights, estimator.ceiling)
    if not imputed:
        return found
    # What an imputation leaves of a weight is below the ceiling even if its propensity was clipped.
    whole = diagnose_parts((estimator.inverse(part) for part in blocks(slots)), estimator.ceiling)
    return replace(found, clipped=whole.clipped)
