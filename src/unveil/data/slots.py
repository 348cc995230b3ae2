"""Slots: the masked places of a batch, each with its own user, item and time step from the log."""

from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Slots:
    """M places whose item is to be predicted: `user_M` met `item_M` at `step_M`.

    The values are carried from the log to the loss and never re-derived from where a token stands in a padded row.
    `event_M` is the row of the log that each slot came from; it is None where no event of a log lies behind a slot.
    `lot` names the batch that the slots were dealt in, (seed, epoch, nth), and stays with every part of it: what is
    drawn at random for a batch is drawn by its lot, so that it is the same however the batch is divided.
    """

    user_M: Tensor
    item_M: Tensor
    step_M: Tensor
    event_M: Tensor | None = None
    lot: tuple[int, ...] = field(default=(), kw_only=True)

    def __len__(self) -> int:
        return len(self.item_M)

    def to(self, device: torch.device | str) -> Self:
        """The same slots on a device."""
        event_M = None if self.event_M is None else self.event_M.to(device)
        return type(self)(self.user_M.to(device), self.item_M.to(device), self.step_M.to(device), event_M, lot=self.lot)

    def part(self, start: int, stop: int) -> Self:
        """The slots from `start` up to, not including, `stop`."""
        return self.at(slice(start, stop))

    def at(self, rows: Tensor | slice) -> Self:
        """Some of the slots, by their places."""
        event_M = None if self.event_M is None else self.event_M[rows]
        return type(self)(self.user_M[rows], self.item_M[rows], self.step_M[rows], event_M, lot=self.lot)
