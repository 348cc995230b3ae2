"""The loss that takes every interaction at its word."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unveil.data.slots import Slots
from unveil.estimators.base import Need, Signal, register


@register
@dataclass(frozen=True)
class Naive:
    """BERT4Rec's own loss (eq. of L_Cloze): the target is the item of the log and w = 1.

    Biased whenever θ is below 1 for something that may be chosen (Proposition 1).
    """

    name: ClassVar[str] = "naive"
    needs: ClassVar[Need] = "nothing"
    self_normalised: ClassVar[bool] = False

    def __call__(self, slots: Slots) -> Signal:
        """The item itself, weight one."""
        return Signal(slots.item_M, torch.ones(len(slots), device=slots.item_M.device))
