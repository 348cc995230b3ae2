"""Logit adjustment by static popularity: the plain baseline of corrected softmaxes."""

from dataclasses import dataclass
from typing import ClassVar

from unveil.estimators.base import Need, register
from unveil.estimators.offset import PropensityOffset


@register
@dataclass(frozen=True, eq=False)
class LogitAdjustment(PropensityOffset):
    """P(i | s, t) ∝ θ_si^strength · exp f_i with a static θ, such as popularity (A. K. Menon et al., ICLR 2021).

    Balanced over items rather than unbiased: popularity is exposure times relevance, and both are explained away.
    """

    name: ClassVar[str] = "logit-adjustment"
    needs: ClassVar[Need] = "static"
