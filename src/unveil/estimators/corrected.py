"""Exposure-corrected softmax: the choice among what is exposed, modelled instead of re-weighted."""

from dataclasses import dataclass
from typing import ClassVar

from unveil.estimators.base import Need, register
from unveil.estimators.offset import PropensityOffset


@register
@dataclass(frozen=True, eq=False)
class ExposureCorrected(PropensityOffset):
    """P(i | s, t) ∝ θ_sit · exp f_i: a multinomial logit in which each item is considered with probability θ.

    Consistent where users choose so. For a user who takes the best of what happens to be exposed it finds, slot by
    slot, what ITPS finds (`unveil theory`): the favourite first, and too much left for those behind it. But it finds it
    without weights, so that far fewer events are enough. Where one f serves slots of different θ, ITPS keeps the
    favourite first and this need not. Needs θ of every item at the slot, not of the taken one alone.
    """

    name: ClassVar[str] = "corrected"
    needs: ClassVar[Need] = "temporal"
