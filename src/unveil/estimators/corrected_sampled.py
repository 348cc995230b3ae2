"""Exposure-corrected softmax over some of the items: two corrections in one offset."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unveil.data.slots import Slots
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.losses.sample import Sample
from unveil.estimators.offset import PropensityOffset
from unveil.estimators.over_sample import OverSample, theta_of_some


@register
@dataclass(frozen=True, eq=False)
class CorrectedSampled(OverSample, PropensityOffset):
    """P(i | s, t) ∝ θ_sit · exp f_i as in corrected, the sum over all items replaced by that over a sample.

    A drawn item's logit becomes f_j + log θ_sjt − log π_j: what was not shown is no evidence, and what was not drawn
    is stood for by what was. Tends to corrected as more are drawn. In large catalogues θ is asked for at
    the target and the drawn items alone.
    """

    name: ClassVar[str] = "corrected-sampled"
    needs: ClassVar[Need] = "temporal"

    def __post_init__(self) -> None:
        OverSample.__post_init__(self)
        PropensityOffset.__post_init__(self)

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, against the items drawn for its batch, each shifted by its own exposure at the slot."""
        item_K, log_chance_K = self.drawn(slots)
        theta_MK = theta_of_some(self.propensity, slots, item_K, len(self.sampler.chance_V))
        sample = Sample(item_K, self.shift(theta_MK) - log_chance_K, self.shift(self.propensity(slots)))
        return Signal(slots.item_M, torch.ones(len(slots), device=slots.item_M.device), sample=sample)
