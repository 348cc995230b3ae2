"""An estimator whose weights differ from item to item, and a look at gradients."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from unveil.data.slots import Slots
from unveil.estimators.base import Need, Signal


@dataclass(frozen=True)
class Uneven:
    """Item i counts 1 + i."""

    self_normalised: bool = False

    name: ClassVar[str] = "uneven"
    needs: ClassVar[Need] = "nothing"

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, 1.0 + slots.item_M.float())


def gradients(model: nn.Module) -> Tensor:
    """All of them in a row, zeros where there are none."""
    flat = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return torch.cat([gradient.reshape(-1) for gradient in flat]).clone()


def weights(model: nn.Module) -> Tensor:
    """All of them in a row."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()]).clone()
