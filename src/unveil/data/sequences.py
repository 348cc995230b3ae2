"""Every user's history in time order, flat, each event with its own time step. Shapes: N events, U users, T steps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import Index, counted, gathered, side_by_side
from unveil.data.interactions import Interactions
from unveil.data.mapped import kept, release
from unveil.errors import UnveilError
from unveil.wording import quantity

Offsets = NDArray[np.int64]

BLOCK = 1 << 22  # Events looked at together by those who go through all of them
_COLUMNS = ("item_N", "step_N", "event_N")


@dataclass(frozen=True, eq=False)
class Sequences:
    """Histories laid end to end: user u owns the events `offset_U1[u]` to `offset_U1[u + 1]`, oldest first.

    An event's step is set once, from the whole history, and stays with it through every split and cut; it is never
    inferred from a place in a padded row. Steps count from 0 to T − 1; the paper counts from 1. Columns may be on the
    disk (`data.packed`): a `Cut` of them copies nothing if events are looked up at `first_U` in those of `storage`.
    """

    item_N: Index
    step_N: Index
    event_N: Index  # the row of the log that the event came from
    clock: NDArray[np.int64] | None  # the log's times by row, in µs; None where it has an order but no clock
    offset_U1: Offsets
    n_items: int
    n_steps: int

    @classmethod
    def of(cls, log: Interactions) -> "Sequences":
        """The histories in a log: by time, ties in file order; impressions without a click stay out.

        Where the log has no steps, every user's most recent event is at T − 1, T the length of the longest history.
        """
        if (histories := log.histories()) is not None:
            return histories
        row_N = log.order()
        if log.clicked is not None:
            row_N = row_N[log.clicked[row_N]]
        offset_U1 = offsets(counted(log.interacted().user, len(log.users)))
        step_N, n_steps = _steps(log, row_N, offset_U1)
        return cls(gathered(log.item, row_N), step_N, row_N, log.time, offset_U1, len(log.items), n_steps)

    def __len__(self) -> int:
        return int(self.offset_U1[-1])

    def __repr__(self) -> str:
        whose = f"{quantity(len(self), 'event')} of {quantity(self.n_users, 'user')}"
        return f"Sequences({whose}, {quantity(self.n_items, 'item')}, T = {self.n_steps})"

    @property
    def n_users(self) -> int:
        """Number of users, those without events included."""
        return len(self.offset_U1) - 1

    @property
    def length_U(self) -> NDArray[np.int64]:
        """Events of each user."""
        return np.diff(self.offset_U1)

    @property
    def user_N(self) -> Index:
        """The user of each event."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.length_U)

    @property
    def time_N(self) -> NDArray[np.int64] | None:
        """When each event was, looked up anew: most who hold sequences never ask."""
        return None if self.clock is None else gathered(self.clock, self.event_N)

    @property
    def count_V(self) -> NDArray[np.int64]:
        """Events of each item."""
        return sum((counted(part.item_N, self.n_items) for part in self.blocks()), np.zeros(self.n_items, np.int64))

    @property
    def storage(self) -> "Sequences":
        """Whose columns the events are stored in: its own, or of a `Cut` those that it is a part of."""
        stored: Sequences = self.__dict__.get("_storage", self)
        return stored

    @property
    def first_U(self) -> Offsets:
        """Where each user's events begin in the columns of `storage`."""
        begin_U: Offsets = self.__dict__.get("_first_U", self.offset_U1[:-1])
        return begin_U

    def history(self, user: int) -> Index:
        """The items of one user, oldest first."""
        first = self.first_U[user]
        return self.storage.item_N[first : first + self.offset_U1[user + 1] - self.offset_U1[user]]

    def cut(self, start_U: NDArray[Any], stop_U: NDArray[Any]) -> "Sequences":
        """Each user's events from place `start` up to, not including, `stop`; every event keeps its step."""
        length_U = np.maximum(start_U, stop_U) - start_U
        if isinstance(self.storage.item_N, np.memmap):
            return Cut(self.storage, self.first_U + start_U, offsets(length_U))
        run_U3 = np.stack([start_U, length_U, self.length_U - start_U - length_U], axis=1)
        keep_N = np.repeat(np.tile([False, True, False], self.n_users), run_U3.ravel())
        columns = side_by_side(lambda column: column[keep_N], (self.item_N, self.step_N, self.event_N))
        return self._of_columns(columns, offsets(length_U))

    def recent(self, length: int) -> "Sequences":
        """At most the last `length` events of each user."""
        return self.cut(np.maximum(0, self.length_U - length), self.length_U)

    def copied(self) -> "Sequences":
        """The same histories in columns that hold nothing else, for those who must not reach more."""
        return self

    def blocks(self) -> Iterator["Sequences"]:
        """All histories, some neighbouring users at a time, who are numbered from 0 in each block."""
        edges = np.searchsorted(self.offset_U1, np.arange(0, len(self) + BLOCK, BLOCK)).clip(max=self.n_users)
        for first, last in pairwise(np.unique([0, *edges, self.n_users]).tolist()):
            yield self._users(first, last)
            release(self.storage.item_N, self.storage.step_N, self.storage.event_N, self.clock)

    def _users(self, first: int, last: int) -> "Sequences":
        offset_U1 = self.offset_U1[first : last + 1]
        columns = (column[offset_U1[0] : offset_U1[-1]] for column in (self.item_N, self.step_N, self.event_N))
        return self._of_columns(columns, offset_U1 - offset_U1[0])

    def _of_columns(self, columns: Iterable[Index], offset_U1: Offsets) -> "Sequences":
        item_N, step_N, event_N = columns
        return Sequences(item_N, step_N, event_N, self.clock, offset_U1, self.n_items, self.n_steps)


class Cut(Sequences):
    """A part of each history in the columns of others, on the disk; its own are put together where somebody asks."""

    def __init__(self, storage: Sequences, first_U: Offsets, offset_U1: Offsets) -> None:
        shared = {"clock": storage.clock, "n_items": storage.n_items, "n_steps": storage.n_steps}
        self.__dict__.update(shared, _storage=storage, _first_U=first_U, offset_U1=offset_U1)

    def __getattr__(self, name: str) -> Index:
        if name not in _COLUMNS:
            raise AttributeError(name)
        at_N = np.repeat(self.first_U - self.offset_U1[:-1], self.length_U)
        at_N += np.arange(len(at_N))
        self.__dict__[name] = column_N = gathered(getattr(self.storage, name), at_N)
        return column_N

    def copied(self) -> Sequences:
        columns = (kept((getattr(part, name) for part in self.blocks()), (len(self),), np.int32) for name in _COLUMNS)
        return self._of_columns(columns, self.offset_U1)

    def _users(self, first: int, last: int) -> Sequences:
        return Cut(self.storage, self.first_U[first:last], self.offset_U1[first : last + 1] - self.offset_U1[first])


def moment(time: int) -> str:
    """A time in µs as ISO 8601, to the second."""
    return str(np.datetime64(time, "us").astype("datetime64[s]"))


def offsets(length_U: NDArray[Any]) -> Offsets:
    """Where histories of these lengths begin and end when laid end to end."""
    return np.concatenate([[0], np.cumsum(length_U)]).astype(np.int64)


def _steps(log: Interactions, row_N: Index, offset_U1: Offsets) -> tuple[Index, int]:
    if log.step is not None:
        step_N = log.step[row_N]
        if len(step_N) and step_N.min() < 0:
            raise UnveilError("a step is negative", found=int(step_N.min()), expected="steps counted from 0")
        return step_N, int(step_N.max()) + 1 if len(step_N) else 0
    length_U = np.diff(offset_U1)
    n_steps = int(length_U.max()) if len(length_U) else 0
    step_N = np.repeat((n_steps - offset_U1[1:]).astype(np.int32), length_U)
    step_N += np.arange(len(row_N), dtype=np.int32)
    return step_N, n_steps


def every_rating(log: Interactions, train: Sequences, who: str, instead: str) -> NDArray[np.float64]:
    """rating_N of the training events, for one `who` needs them all; where some are empty, `instead` is what to use."""
    rating_N = np.full(len(train), np.nan) if log.rating is None else log.rating[train.event_N].astype(np.float64)
    empty_N = ~np.isfinite(rating_N)
    if empty_N.any():
        problem, hint = f"{who} needs a rating of every event, and some are empty", f"Fill them in, or use {instead}."
        raise UnveilError(problem, where=rows_in_words(train.event_N[empty_N], "training event"), hint=hint)
    return rating_N


def rows_in_words(row_N: NDArray[Any], noun: str) -> str:
    """How many rows of a log these are, and the first of them as an editor counts."""
    return f"{quantity(len(row_N), noun)}, first row {int(row_N[0]) + 1} of the log"
