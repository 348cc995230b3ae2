"""Batches of training rows: the Cloze and the next-item task, rows of similar length together.

Shapes: B rows of a batch, L columns, M slots, N events, R rows of an epoch (users with training events), K batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.indexing import Index
from unveil.data.interactions import BLOCK, Sequences
from unveil.data.mapped import blocks, flags, release
from unveil.data.slots import Slots, mask_token, pad_token, places
from unveil.errors import AtLeastOne, Share, UnveilError, UpToOne, check_ranges

RowNumbers = NDArray[np.int64]

POOL = 50  # Rows are sorted by length inside shuffled pools of this many batches
_HELD = 1024  # Rows read from the disk before their pages are released: the system loads some 64 KiB about each


@dataclass(frozen=True, eq=False)
class Batch:
    """Right-aligned rows of tokens; slot m is at row `where[0][m]`, column `where[1][m]`, in row-major order."""

    token_BL: Tensor
    slots: Slots
    where: tuple[Tensor, Tensor]

    def to(self, device: torch.device | str) -> "Batch":
        b_M, l_M = self.where
        return Batch(self.token_BL.to(device), self.slots.to(device), (b_M.to(device), l_M.to(device)))


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a batch of right-aligned rows, and where each finds its event."""

    row_B: RowNumbers
    nth_BL: NDArray[np.int64]  # among the events of all rows, end to end
    at_BL: NDArray[np.int64]  # in the columns
    empty_BL: NDArray[np.bool_]  # left of the row


@dataclass(frozen=True, eq=False)
class _Task:
    """Each epoch has the last `length` training events of every user who has any, a row each.

    `windows`: all of a user's events, the last `length` in a row, those before them in another, and so on.
    `bucket`: rows of similar length share a batch, cropped to the longest, `batch_size` on average; else any.
    """

    train: Sequences
    length: AtLeastOne
    batch_size: AtLeastOne
    seed: int = field(default=0, kw_only=True)
    bucket: bool = field(default=True, kw_only=True)
    windows: bool = field(default=False, kw_only=True)
    recent: Sequences = field(init=False, repr=False)  # the events of all rows, end to end
    user_R: RowNumbers = field(init=False, repr=False)
    start_R: RowNumbers = field(init=False, repr=False)  # of the row among the events
    length_R: RowNumbers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_ranges(self, "")
        if not len(self.train):
            raise UnveilError("the training part has no events", hint="Use a longer log, or a later cut in time.")
        recent = self.train if self.windows else self.train.recent(self.length)
        rows_U = -(-recent.length_U // self.length)
        user_R = np.repeat(np.arange(recent.n_users), rows_U)
        later_R = np.cumsum(rows_U)[user_R] - 1 - np.arange(len(user_R))  # rows of the same user with later events
        stop_R = recent.offset_U1[user_R + 1] - later_R * self.length
        start_R = np.maximum(recent.offset_U1[user_R], stop_R - self.length)
        vars(self).update(recent=recent, user_R=user_R, start_R=start_R, length_R=stop_R - start_R)

    def __len__(self) -> int:
        return -(-len(self.start_R) // self.batch_size)

    @property
    def slots(self) -> Slots:
        """Every event that can be predicted, as one set of slots: what weights are diagnosed on."""
        return AllSlots(self)

    @property
    def item_N(self) -> Index:
        return self.recent.storage.item_N

    @cached_property
    def _shift_R(self) -> RowNumbers:
        """From a place among the events to the columns."""
        return (self.recent.first_U - self.recent.offset_U1[:-1])[self.user_R]

    def _columns(self) -> tuple[Index, Index, Index]:
        return self.item_N, self.recent.storage.step_N, self.recent.storage.event_N

    def cells(self, rng: np.random.Generator) -> Iterator[Cells]:
        held, draw = 0, by_length if self.bucket else at_random
        for row_B in draw(self.length_R, self.batch_size, rng):
            width = int(self.length_R[row_B].max()) if self.bucket else self.length
            start_B = self.start_R[row_B]
            nth_BL, empty_BL = places(start_B, start_B + self.length_R[row_B], width)
            yield Cells(row_B, nth_BL, np.where(empty_BL, 0, nth_BL + self._shift_R[row_B, None]), empty_BL)
            held += len(row_B)
            if held > _HELD:
                release(*self._columns())
                held = 0

    def batch(self, token_BL: NDArray[Any], cells: Cells, slot_BL: NDArray[np.bool_], lot: tuple[int, ...]) -> Batch:
        """Tokens with padding in the empty cells, and a slot for the event of every cell of `slot_BL`."""
        token_BL = np.where(cells.empty_BL, pad_token(self.train.n_items), token_BL).astype(np.int64)
        b_M, l_M = np.nonzero(slot_BL)
        slots = replace(self._slots(self.user_R[cells.row_B[b_M]], cells.at_BL[b_M, l_M]), lot=lot)
        return Batch(torch.from_numpy(token_BL), slots, (torch.from_numpy(b_M), torch.from_numpy(l_M)))

    def events(self, some: slice) -> Slots:
        nth_M = np.arange(*some.indices(len(self.recent)))
        row_M = np.searchsorted(self.start_R, nth_M, side="right") - 1
        slots = self._slots(self.user_R[row_M], nth_M + self._shift_R[row_M])
        release(*self._columns())
        return slots

    def _slots(self, user_M: NDArray[Any], at_M: NDArray[Any]) -> Slots:
        columns = user_M, *(column[at_M] for column in self._columns())
        return Slots(*(torch.from_numpy(column.astype(np.int64)) for column in columns))


def at_random(length_R: NDArray[Any], batch_size: int, rng: np.random.Generator) -> Iterator[RowNumbers]:
    """Batches of `batch_size` rows drawn at random, the last one shorter."""
    row_R = rng.permutation(len(length_R))
    for k in rng.permutation(-(-len(row_R) // batch_size)):
        yield row_R[k * batch_size : (k + 1) * batch_size]


def by_length(length_R: NDArray[Any], batch_size: int, rng: np.random.Generator) -> Iterator[RowNumbers]:
    """As many batches as `at_random` gives, but of rows of similar length, which need little padding.

    All hold about the same number of events, few long rows or many short ones: steps of unequal weight learn slower.
    """
    row_R, pool = rng.permutation(len(length_R)), POOL * batch_size
    pools = (row_R[start : start + pool] for start in range(0, len(row_R), pool))
    batches = [batch for pool_R in pools for batch in _equal_parts(pool_R, length_R, batch_size)]
    for k in rng.permutation(len(batches)):
        yield batches[k]


def _equal_parts(row_R: RowNumbers, length_R: NDArray[Any], batch_size: int) -> list[RowNumbers]:
    row_R = row_R[np.argsort(length_R[row_R], kind="stable")]
    count = -(-len(row_R) // batch_size)
    events_R = np.cumsum(length_R[row_R])
    inner_K = np.arange(1, count)
    cut_K = np.searchsorted(events_R, events_R[-1] * inner_K / count, side="right")
    # A row longer than a batch's share must leave none of its neighbours empty.
    cut_K = np.maximum.accumulate(np.maximum(cut_K, inner_K) - inner_K) + inner_K
    return np.split(row_R, np.minimum(cut_K, len(row_R) - inner_K[::-1]))


class AllSlots(Slots):
    """Every event of a task's rows as a slot. Parts of it are made on request: the whole may be larger than memory."""

    _task: _Task

    def __init__(self, task: _Task) -> None:
        self.__dict__["_task"] = task

    def __len__(self) -> int:
        return len(self._task.recent)

    def at(self, rows: Tensor | slice) -> Slots:
        return self._task.events(rows) if isinstance(rows, slice) else self._whole.at(rows)

    @cached_property
    def _whole(self) -> Slots:
        return self._task.events(slice(None))

    def __getattr__(self, name: str) -> Tensor:
        """The columns user_M, item_M, step_M and event_M."""
        if name.startswith("_"):
            raise AttributeError(name)
        return cast(Tensor, getattr(self._whole, name))


@dataclass(frozen=True, eq=False)
class ClozeTask(_Task):
    """Each event is hidden with `mask_probability` ρ, its item replaced by MASK.

    A row in which nothing was drawn has one event, chosen uniformly, hidden (`always_mask=False`: it stays whole and
    gives no slot, as in the paper). With probability `last_share` a row has its last event hidden and no other: the
    prediction that recommending needs. A history of one event is a row of MASK alone, from which the model learns
    what to say knowing nothing. What is hidden depends on the seed and the epoch alone, not on how rows share batches.
    """

    mask_probability: UpToOne
    last_share: Share = 0.0
    always_mask: bool = True

    @cached_property
    def slots_per_batch(self) -> float:
        """The expected slots of a full batch. Risks divided by this, not by M, weigh all slots of an epoch alike."""
        rho, length_R = self.mask_probability, self.length_R
        drawn_R = rho * length_R + ((1 - rho) ** length_R if self.always_mask else 0.0)
        return self.batch_size * float(np.mean(self.last_share + (1 - self.last_share) * drawn_R))

    def epoch(self, n: int) -> Iterator[Batch]:
        """The batches of epoch n: a pure function of the seed and n, so that a resumed run sees what it would have."""
        rng = np.random.default_rng([self.seed, n])
        hidden, mask = self._hidden(rng), mask_token(self.train.n_items)
        for nth, cells in enumerate(self.cells(rng)):
            hidden_BL = hidden[cells.nth_BL.ravel()].to_numpy().reshape(cells.nth_BL.shape) & ~cells.empty_BL
            yield self.batch(np.where(hidden_BL, mask, self.item_N[cells.at_BL]), cells, hidden_BL, (self.seed, n, nth))

    def _hidden(self, rng: np.random.Generator) -> pl.Series:
        sizes = (rows.stop - rows.start for rows in blocks(len(self.recent)))
        drawn = flags(rng.random(size, np.float32) < self.mask_probability for size in sizes)
        last_R = rng.random(len(self.length_R)) < self.last_share
        chosen_R = self.start_R + rng.integers(self.length_R)
        stop_R = self.start_R + self.length_R
        edges = np.searchsorted(stop_R, np.arange(0, len(drawn) + BLOCK, BLOCK))

        def hidden(first: int, last: int) -> NDArray[np.bool_]:
            some, begin = slice(first, last), int(self.start_R[first])
            hidden_N = drawn[begin : int(stop_R[last - 1])].to_numpy() & ~np.repeat(last_R[some], self.length_R[some])
            hidden_N[stop_R[some][last_R[some]] - begin - 1] = True
            if self.always_mask:
                whole_R = ~np.logical_or.reduceat(hidden_N, self.start_R[some] - begin)
                hidden_N[chosen_R[some][whole_R] - begin] = True
            return hidden_N

        return flags(hidden(*ends) for ends in pairwise(np.unique([*edges, len(last_R)]).tolist()))


@dataclass(frozen=True, eq=False)
class NextItemTask(_Task):
    """Every event is predicted: of x₁ … xₙ a row gives MASK, x₁ … xₙ₋₁, what a causal network may read before each.

    MASK marks the beginning, so that the first event is predicted as well.
    """

    @cached_property
    def slots_per_batch(self) -> float:
        return self.batch_size * float(self.length_R.mean())

    def epoch(self, n: int) -> Iterator[Batch]:
        rng = np.random.default_rng([self.seed, n])
        for nth, cells in enumerate(self.cells(rng)):
            event_BL = ~cells.empty_BL
            first_BL = event_BL & (np.cumsum(event_BL, axis=1) == 1)
            token_BL = np.where(first_BL, mask_token(self.train.n_items), self.item_N[np.maximum(cells.at_BL - 1, 0)])
            yield self.batch(token_BL, cells, event_BL, (self.seed, n, nth))
