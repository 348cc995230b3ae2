"""Inverse temporal propensity scoring: the paper's estimator."""

from dataclasses import dataclass
from typing import ClassVar

from unveil.estimators.base import Need, register
from unveil.estimators.inverse import InversePropensity


@register
@dataclass(frozen=True, eq=False)
class ITPS(InversePropensity):
    """w = 1 / θ_sit, the propensity at the slot's own step (eq. of L_ITPS).

    Unbiased (Proposition 3) where the choice does not depend on what is exposed, and there is no clip.
    """

    name: ClassVar[str] = "itps"
    needs: ClassVar[Need] = "temporal"
