"""The naive loss over some of the items, for catalogues that are too large for all of them."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unveil.data.slots import Slots
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.losses.sample import Sample
from unveil.estimators.over_sample import OverSample


@register
@dataclass(frozen=True, eq=False)
class NaiveSampled(OverSample):
    """The loss of naive (eq. of L_Cloze) with the softmax taken over the target and a sample: P(t) ∝ e^f_t, and the
    rest of the catalogue ∝ Σ_{j drawn, j ≠ t} e^f_j / π_j, which is right in the mean.

    Tends to naive as more are drawn, and shares its bias (Proposition 1).
    """

    name: ClassVar[str] = "naive-sampled"
    needs: ClassVar[Need] = "nothing"
    self_normalised: ClassVar[bool] = False

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, against the items drawn for its batch."""
        item_K, log_chance_K = self.drawn(slots)
        ones_M = torch.ones(len(slots), device=slots.item_M.device)
        return Signal(slots.item_M, ones_M, sample=Sample(item_K, -log_chance_K[None], torch.zeros_like(ones_M)))
