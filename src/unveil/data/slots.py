"""Tokens and slots: what a network reads, and the places whose item it predicts.

Tokens are item indices 0 to V − 1, then PAD and MASK; rows are right-aligned, the most recent event last.
Shapes: B rows, L columns, N events, M slots, V items.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Sequences
from unveil.data.mapped import release


@dataclass(frozen=True, eq=False)
class Slots:
    """M places whose item is to be predicted: `user_M` interacted with `item_M` at `step_M`, as the log has them.

    `event_M` is the row of the log that each slot came from; None where there is none. `lot` names the batch, (seed,
    epoch, nth), in every part of it: what is drawn at random by it is the same however the batch is divided.
    """

    user_M: Tensor
    item_M: Tensor
    step_M: Tensor
    event_M: Tensor | None = field(default_factory=lambda: None)  # no default in the class: see `AllSlots`
    lot: tuple[int, ...] = field(default=(), kw_only=True)

    def __len__(self) -> int:
        return len(self.item_M)

    def to(self, device: torch.device | str) -> "Slots":
        event_M = None if self.event_M is None else self.event_M.to(device)
        return Slots(self.user_M.to(device), self.item_M.to(device), self.step_M.to(device), event_M, lot=self.lot)

    def part(self, start: int, stop: int) -> "Slots":
        """The slots from `start` up to, not including, `stop`."""
        return self.at(slice(start, stop))

    def at(self, rows: Tensor | slice) -> "Slots":
        event_M = None if self.event_M is None else self.event_M[rows]
        return Slots(self.user_M[rows], self.item_M[rows], self.step_M[rows], event_M, lot=self.lot)


def pad_token(n_items: int) -> int:
    """PAD fills the columns left of a short row."""
    return n_items


def mask_token(n_items: int) -> int:
    """MASK stands where an item is to be predicted."""
    return n_items + 1


def n_tokens(n_items: int) -> int:
    """Rows of an embedding table: the items, then PAD and MASK."""
    return n_items + 2


def places(start_B: NDArray[Any], stop_B: NDArray[Any], width: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Where each cell of right-aligned rows finds its event: `at_BL` in the flat arrays, and which cells are empty."""
    at_BL = stop_B[:, None] + np.arange(-width, 0)
    empty_BL = at_BL < start_B[:, None]
    at_BL[empty_BL] = 0
    return at_BL, empty_BL


def histories(sequences: Sequences, user_B: NDArray[Any], seen_B: NDArray[Any], length: int) -> Tensor:
    """For a scorer: the last `length` − 1 of each user's first `seen_B` events, then MASK; as wide as needed."""
    start_B, item_N = sequences.first_U[user_B], sequences.storage.item_N
    token_BL = _rows(item_N, start_B, start_B + seen_B, sequences.n_items, length)
    release(item_N)
    return token_BL


def tokens_of(histories: Sequence[NDArray[Any]], n_items: int, length: int) -> Tensor:
    """The same for given histories of item indices, oldest first; an empty history gives a row of MASK alone."""
    size_B = np.array([len(history) for history in histories], np.int64)
    stop_B = np.cumsum(size_B)
    item_N = np.concatenate([np.asarray(history, np.int64) for history in histories] or [np.zeros(0, np.int64)])
    if len(item_N) and not 0 <= item_N.min() <= item_N.max() < n_items:
        raise ValueError(f"items {item_N.min()} to {item_N.max()} are not within 0 to {n_items - 1}")
    return _rows(item_N, stop_B - size_B, stop_B, n_items, length)


def _rows(item_N: NDArray[Any], start_B: NDArray[Any], stop_B: NDArray[Any], n_items: int, length: int) -> Tensor:
    start_B = np.maximum(start_B, stop_B - (length - 1))
    width = int((stop_B - start_B).max(initial=0))
    token_BL = np.full((len(start_B), width + 1), mask_token(n_items), np.int64)
    if width:
        at_BL, empty_BL = places(start_B, stop_B, width)
        token_BL[:, :-1] = np.where(empty_BL, pad_token(n_items), item_N[at_BL])
    return torch.from_numpy(token_BL)
