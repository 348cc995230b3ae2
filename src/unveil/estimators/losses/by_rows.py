"""A number for every slot and item that is made some slots at a time: catalogues are long, and M × V numbers many.

Shapes: M slots, R of them, V items.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from unveil.data.slots import Slots


@dataclass(frozen=True, eq=False)
class ByRows:
    """x_MV, of which `[rows]` makes the rows that are asked for and keeps none; `[:]` makes it whole, as a tensor."""

    slots: Slots
    make: Callable[[Slots], Tensor]  # x_RV of some of the slots: each slot is judged by itself
    device: torch.device | str | None = None  # None: where they are made

    def __len__(self) -> int:
        return len(self.slots)

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        made_RV = self.make(self.slots.at(rows))
        return made_RV if self.device is None else made_RV.to(self.device)

    def to(self, device: torch.device | str) -> Self:
        """The same numbers on a device: they are made where the slots are, and moved."""
        return replace(self, device=device)


#: A number for every slot and item, at hand or made when asked for.
Wide = Tensor | ByRows


@dataclass(frozen=True, eq=False)
class Both:
    """Two numbers for every slot and item: of the rows that are asked for both, x_2RV."""

    first_MV: Wide
    second_MV: Wide

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        return torch.stack((self.first_MV[rows], self.second_MV[rows]))
