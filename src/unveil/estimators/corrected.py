"""Exposure-corrected softmax: the choice among what is exposed, modelled instead of re-weighted."""

from dataclasses import dataclass
from typing import ClassVar

from unveil.estimators.base import Need, register
from unveil.estimators.offset import PropensityOffset


@register
@dataclass(frozen=True, eq=False)
class ExposureCorrected(PropensityOffset):
    """P(i | s, t) ∝ θ_sit · exp f_i: a multinomial logit in which each item is considered with probability θ.

    Consistent where users choose so; close to it where a user takes the best of what happens to be exposed, for which
    inverse weighting is biased. Needs θ of every item at the slot, not of the taken one alone.
    """

    name: ClassVar[str] = "corrected"
    needs: ClassVar[Need] = "temporal"
