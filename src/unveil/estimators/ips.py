"""Inverse propensity scoring, as for users without a clock."""

from dataclasses import dataclass
from typing import ClassVar

from unveil.estimators.base import Need, register
from unveil.estimators.inverse import InversePropensity


@register
@dataclass(frozen=True, eq=False)
class IPS(InversePropensity):
    """w = 1 / θ_si, the static propensity (eq. of L_IPS).

    Where the choice does not depend on exposure: unbiased if and only if θ does not change with the step (Proposition
    2), for any item that may be chosen.
    """

    name: ClassVar[str] = "ips"
    needs: ClassVar[Need] = "static"
