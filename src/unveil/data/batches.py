"""The Cloze task: histories with some items hidden, batch by batch, each hidden item with its own slot.

Shapes: B rows, L columns, M masked slots, N events, R rows of an epoch (users with training events).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.buckets import at_random, by_length
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.data.tokens import histories, mask_token, n_tokens, pad_token, places, tokens_of
from unveil.errors import UnveilError

__all__ = ["Batch", "ClozeTask", "histories", "mask_token", "n_tokens", "pad_token", "tokens_of"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Right-aligned rows of tokens; slot m is hidden at row `where[0][m]`, column `where[1][m]`, in row-major order."""

    token_BL: Tensor
    slots: Slots
    where: tuple[Tensor, Tensor]

    def to(self, device: torch.device | str) -> Self:
        """The same batch on a device."""
        b_M, l_M = self.where
        return type(self)(self.token_BL.to(device), self.slots.to(device), (b_M.to(device), l_M.to(device)))


@dataclass(frozen=True, eq=False)
class ClozeTask:
    """Each epoch shows the last `length` training events of every user once, each hidden with `mask_probability` ρ.

    A hidden item is always replaced by MASK. A row in which nothing was drawn has one event, chosen uniformly, hidden
    (`always_mask=False`: it stays whole and gives no slot, as in the paper). With probability `last_share` a row has
    its last event hidden and no other: the question that is asked when recommending. Users without training events
    have no row; a history of one event is a row of MASK alone, from which the model learns what to say knowing nothing.

    With `bucket`, rows of similar length share a batch, cropped to its longest row, and `batch_size` is the mean number
    of rows; without, rows are drawn at random and padded to `length`. Which events are hidden in epoch n depends on
    the seed and n alone, not on the batches.
    """

    train: Sequences
    length: int
    batch_size: int
    mask_probability: float
    last_share: float = 0.0
    seed: int = 0
    always_mask: bool = True
    bucket: bool = True

    def __post_init__(self) -> None:
        _within("length", self.length, self.length >= 1, "at least 1")
        _within("batch_size", self.batch_size, self.batch_size >= 1, "at least 1")
        _within("mask_probability", self.mask_probability, 0 < self.mask_probability <= 1, "above 0, at most 1")
        _within("last_share", self.last_share, 0 <= self.last_share <= 1, "between 0 and 1")
        if not len(self.train):
            raise UnveilError("the training part has no events", hint="Use a longer log, or a later cut in time.")

    def __len__(self) -> int:
        return -(-len(self._start_R) // self.batch_size)

    @cached_property
    def slots(self) -> Slots:
        """Every event that can be hidden, as one set of slots: what weights are diagnosed on."""
        return self._slots(np.arange(len(self._recent)))

    @cached_property
    def slots_per_batch(self) -> float:
        """The expected number of slots in a full batch.

        Divide each batch's risk by this instead of its own M and all slots of an epoch weigh the same, whichever rows
        they share a batch with.
        """
        rho, length_R = self.mask_probability, self._stop_R - self._start_R
        drawn_R = rho * length_R + ((1 - rho) ** length_R if self.always_mask else 0.0)
        return self.batch_size * float(np.mean(self.last_share + (1 - self.last_share) * drawn_R))

    def epoch(self, n: int) -> Iterator[Batch]:
        """The batches of epoch n: a pure function of the seed and n, so that a resumed run sees what it would have."""
        rng = np.random.default_rng([self.seed, n])
        hidden_N = self._hidden(rng)
        token_N = np.where(hidden_N, mask_token(self.train.n_items), self._recent.item_N)
        for row_B in self._rows(rng):
            yield self._batch(row_B, token_N)

    @cached_property
    def _recent(self) -> Sequences:
        return self.train.recent(self.length)

    @cached_property
    def _user_N(self) -> NDArray[Any]:
        return self._recent.user_N

    @cached_property
    def _start_R(self) -> NDArray[np.int64]:
        return self._recent.offset_U1[:-1][self._recent.length_U > 0]

    @cached_property
    def _stop_R(self) -> NDArray[np.int64]:
        return self._recent.offset_U1[1:][self._recent.length_U > 0]

    def _hidden(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        length_R = self._stop_R - self._start_R
        hidden_N = rng.random(len(self._recent), np.float32) < self.mask_probability
        last_R = rng.random(len(length_R)) < self.last_share
        chosen_R = self._start_R + rng.integers(length_R)
        hidden_N &= ~np.repeat(last_R, length_R)
        hidden_N[self._stop_R[last_R] - 1] = True
        if self.always_mask:
            whole_R = ~np.logical_or.reduceat(hidden_N, self._start_R)
            hidden_N[chosen_R[whole_R]] = True
        return hidden_N

    def _rows(self, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        if self.bucket:
            return by_length(self._stop_R - self._start_R, self.batch_size, rng)
        return at_random(len(self._start_R), self.batch_size, rng)

    def _batch(self, row_B: NDArray[np.int64], token_N: NDArray[Any]) -> Batch:
        start_B, stop_B = self._start_R[row_B], self._stop_R[row_B]
        at_BL, empty_BL = places(start_B, stop_B, int((stop_B - start_B).max()) if self.bucket else self.length)
        token_BL = token_N[at_BL]
        token_BL[empty_BL] = pad_token(self.train.n_items)
        b_M, l_M = np.nonzero(token_BL == mask_token(self.train.n_items))
        where = (torch.from_numpy(b_M), torch.from_numpy(l_M))
        return Batch(torch.from_numpy(token_BL.astype(np.int64)), self._slots(at_BL[b_M, l_M]), where)

    def _slots(self, at_M: NDArray[Any]) -> Slots:
        columns = (self._user_N, self._recent.item_N, self._recent.step_N, self._recent.event_N)
        return Slots(*(torch.from_numpy(column[at_M].astype(np.int64)) for column in columns))


def _within(name: str, found: float, valid: bool, expected: str) -> None:
    if not valid:
        raise UnveilError("out of range", where=name, found=found, expected=expected)
