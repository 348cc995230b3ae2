"""Rows: the recent training events of every user, cut into batches of places in the flat arrays; and what a batch is.

Shapes: B rows of a batch, L columns, M slots, N events, R rows of an epoch (users with training events).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.buckets import at_random, by_length
from unveil.data.mapped import release
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.data.tokens import pad_token, places
from unveil.errors import UnveilError, refuse_unless

#: Rows read from the disk before their pages are let go: the system loads some 64 KiB about each.
_HELD = 1024


@dataclass(frozen=True, eq=False)
class Batch:
    """Right-aligned rows of tokens; slot m is asked at row `where[0][m]`, column `where[1][m]`, in row-major order."""

    token_BL: Tensor
    slots: Slots
    where: tuple[Tensor, Tensor]

    def to(self, device: torch.device | str) -> Self:
        """The same batch on a device."""
        b_M, l_M = self.where
        return type(self)(self.token_BL.to(device), self.slots.to(device), (b_M.to(device), l_M.to(device)))


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a batch of right-aligned rows, and where each finds its event."""

    row_B: NDArray[np.int64]
    nth_BL: NDArray[np.int64]  # among the events of all rows, end to end
    at_BL: NDArray[np.int64]  # in the columns
    empty_BL: NDArray[np.bool_]  # left of the row


@dataclass(frozen=True, eq=False)
class Rows:
    """The last `length` training events of every user who has any, a row each.

    With `bucket`, rows of similar length share a batch, cropped to its longest row, and `batch_size` is the mean number
    of rows; without, rows are drawn at random and padded to `length`.
    """

    train: Sequences
    length: int
    batch_size: int
    bucket: bool

    def __post_init__(self) -> None:
        refuse_unless(self.length >= 1, "length", self.length, "at least 1")
        refuse_unless(self.batch_size >= 1, "batch_size", self.batch_size, "at least 1")
        if not len(self.train):
            raise UnveilError("the training part has no events", hint="Use a longer log, or a later cut in time.")

    def __len__(self) -> int:
        """Batches of an epoch."""
        return -(-len(self.start_R) // self.batch_size)

    @cached_property
    def recent(self) -> Sequences:
        """The events of the rows."""
        return self.train.recent(self.length)

    @cached_property
    def user_R(self) -> NDArray[np.int64]:
        """Whose row it is."""
        return np.flatnonzero(self.recent.length_U)

    @cached_property
    def start_R(self) -> NDArray[np.int64]:
        """Where each row begins among the events of all rows, end to end."""
        return self.recent.offset_U1[:-1][self.user_R]

    @cached_property
    def stop_R(self) -> NDArray[np.int64]:
        """Where each row ends."""
        return self.recent.offset_U1[1:][self.user_R]

    @cached_property
    def length_R(self) -> NDArray[np.int64]:
        """Events of each row."""
        return self.stop_R - self.start_R

    @cached_property
    def _shift_R(self) -> NDArray[np.int64]:
        """From the place of an event among those of all rows to where it lies in the columns."""
        return self.recent.first_U[self.user_R] - self.start_R

    @property
    def item_N(self) -> NDArray[Any]:
        """The column of the items that `Cells.at_BL` points into."""
        return self.recent.lying.item_N

    def batches(self, rng: np.random.Generator) -> Iterator[Cells]:
        """The cells of an epoch, batch by batch."""
        if self.bucket:
            rows = by_length(self.length_R, self.batch_size, rng)
        else:
            rows = at_random(len(self.start_R), self.batch_size, rng)
        held = 0
        for row_B in rows:
            width = int(self.length_R[row_B].max()) if self.bucket else self.length
            nth_BL, empty_BL = places(self.start_R[row_B], self.stop_R[row_B], width)
            yield Cells(row_B, nth_BL, np.where(empty_BL, 0, nth_BL + self._shift_R[row_B, None]), empty_BL)
            held += len(row_B)
            if held > _HELD:
                release(*self._columns)
                held = 0

    def batch(
        self, token_BL: NDArray[Any], cells: Cells, asked_BL: NDArray[np.bool_], lot: tuple[int, ...] = ()
    ) -> Batch:
        """Tokens with padding in the empty cells, and a slot for the event of every cell that is asked for."""
        token_BL = np.where(cells.empty_BL, pad_token(self.train.n_items), token_BL).astype(np.int64)
        b_M, l_M = np.nonzero(asked_BL)
        where = (torch.from_numpy(b_M), torch.from_numpy(l_M))
        slots = self._slots(self.user_R[cells.row_B[b_M]], cells.at_BL[b_M, l_M])
        return Batch(torch.from_numpy(token_BL), replace(slots, lot=lot), where)

    def slots(self, events: slice) -> Slots:
        """Some of the events of all rows as slots."""
        nth_M = np.arange(*events.indices(len(self.recent)))
        row_M = np.searchsorted(self.stop_R, nth_M, side="right")
        slots = self._slots(self.user_R[row_M], nth_M + self._shift_R[row_M])
        release(*self._columns)
        return slots

    def _slots(self, user_M: NDArray[Any], at_M: NDArray[Any]) -> Slots:
        columns = (user_M, *(column[at_M] for column in self._columns))
        user, item, step, event = (torch.from_numpy(column.astype(np.int64)) for column in columns)
        return Slots(user, item, step, event)

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        lying = self.recent.lying
        return lying.item_N, lying.step_N, lying.event_N


class AllSlots(Slots):
    """Every event of the rows as a slot. Parts of it are made when asked for: the whole may be larger than memory."""

    def __init__(self, rows: Rows) -> None:
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "lot", ())

    _rows: Rows

    def __len__(self) -> int:
        return len(self._rows.recent)

    def part(self, start: int, stop: int) -> Self:
        """The slots from `start` up to, not including, `stop`."""
        return self.at(slice(start, stop))

    def at(self, rows: Tensor | slice) -> Self:
        """Some of the slots, by their places."""
        return cast(Self, self._rows.slots(rows) if isinstance(rows, slice) else self._whole.at(rows))

    def to(self, device: torch.device | str) -> Self:
        """The same slots on a device."""
        return cast(Self, self._whole.to(device))

    @cached_property
    def _whole(self) -> Slots:
        return self._rows.slots(slice(None))

    @property
    def user_M(self) -> Tensor:
        """Who."""
        return self._whole.user_M

    @property
    def item_M(self) -> Tensor:
        """What."""
        return self._whole.item_M

    @property
    def step_M(self) -> Tensor:
        """When."""
        return self._whole.step_M

    @property
    def event_M(self) -> Tensor | None:
        """Which row of the log."""
        return self._whole.event_M


class OverRows:
    """What a task over rows has by having them."""

    rows: Rows

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self.rows)

    @property
    def slots(self) -> Slots:
        """Every event that can be asked for, as one set of slots: what weights are diagnosed on."""
        return AllSlots(self.rows)
