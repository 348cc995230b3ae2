"""Rows: the recent training events of every user, cut into batches of places in the flat arrays; and what a batch is.

Shapes: B rows of a batch, L columns, M slots, N events, R rows of an epoch (users with training events).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.buckets import at_random, by_length
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.data.tokens import pad_token, places
from unveil.errors import UnveilError


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
    def start_R(self) -> NDArray[np.int64]:
        """Where each row begins in the flat arrays of `recent`."""
        return self.recent.offset_U1[:-1][self.recent.length_U > 0]

    @cached_property
    def stop_R(self) -> NDArray[np.int64]:
        """Where each row ends."""
        return self.recent.offset_U1[1:][self.recent.length_U > 0]

    @cached_property
    def length_R(self) -> NDArray[np.int64]:
        """Events of each row."""
        return self.stop_R - self.start_R

    def batches(self, rng: np.random.Generator) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Batch by batch, where each cell finds its event (`at_BL`), and which cells are empty."""
        if self.bucket:
            rows = by_length(self.length_R, self.batch_size, rng)
        else:
            rows = at_random(len(self.start_R), self.batch_size, rng)
        for row_B in rows:
            width = int(self.length_R[row_B].max()) if self.bucket else self.length
            yield places(self.start_R[row_B], self.stop_R[row_B], width)

    def batch(
        self,
        token_BL: NDArray[Any],
        at_BL: NDArray[np.int64],
        empty_BL: NDArray[np.bool_],
        asked_BL: NDArray[np.bool_],
        lot: tuple[int, ...] = (),
    ) -> Batch:
        """Tokens with padding in the empty cells, and a slot for the event of every cell that is asked for."""
        token_BL = np.where(empty_BL, pad_token(self.train.n_items), token_BL).astype(np.int64)
        b_M, l_M = np.nonzero(asked_BL)
        where = (torch.from_numpy(b_M), torch.from_numpy(l_M))
        return Batch(torch.from_numpy(token_BL), replace(self.slots(at_BL[b_M, l_M]), lot=lot), where)

    def slots(self, at_M: NDArray[Any] | slice = slice(None)) -> Slots:
        """Some of the events, or all of them, as slots."""
        columns = (self._user_N, self.recent.item_N, self.recent.step_N, self.recent.event_N)
        return Slots(*(torch.from_numpy(column[at_M].astype(np.int64)) for column in columns))

    @cached_property
    def _user_N(self) -> NDArray[Any]:
        return self.recent.user_N


class OverRows:
    """What a task over rows has by having them."""

    rows: Rows

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self.rows)

    @property
    def slots(self) -> Slots:
        """Every event that can be asked for, as one set of slots: what weights are diagnosed on."""
        return self.rows.slots()


def refuse_unless(valid: bool, name: str, found: float, expected: str) -> None:
    """A setting out of its range is refused by name."""
    if not valid:
        raise UnveilError("out of range", where=name, found=found, expected=expected)
