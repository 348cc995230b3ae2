"""Interactions and Sequences: a log, and every user's history of it in time order.

Interactions are immutable: users, items and times in dense indices, with the raw ids beside them. Sequences are flat,
each event with its own time step. Shapes: N events, U users, T steps.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.data.indexing import Index, Vocabulary, counted, gathered, indexed, side_by_side, sorted_rows
from unveil.data.mapped import blocks, kept, release, walked
from unveil.errors import UnveilError
from unveil.wording import quantity

Mask = NDArray[np.bool_]
Log = (
    Any  # a path, the name of a data set, the URL of a database; or a frame of pandas or polars, which are not imported
)

#: Optional columns and their types; each is carried along where a log has it.
OPTIONAL: Mapping[str, np.dtype[Any]] = {
    "time": np.dtype(np.int64),  # µs since 1970-01-01 UTC
    "rating": np.dtype(np.float32),
    "clicked": np.dtype(np.bool_),  # False: an impression without a click, never part of a history
    "exposed": np.dtype(np.bool_),  # the system showed the item here
    "propensity": np.dtype(np.float64),  # the logged probability of being shown
    "position": np.dtype(np.int32),  # the place in the list where it was shown
    "randomised": np.dtype(np.bool_),  # shown by a random policy
    "step": np.dtype(np.int32),  # the event's own time step, counted from 0
}


@dataclass(frozen=True, eq=False)
class Interactions:
    """One row an event, in file order: `users[user[n]]` interacted with `items[item[n]]` at `time[n]`. Read-only."""

    user: Index
    item: Index
    users: Vocabulary
    items: Vocabulary
    time: NDArray[np.int64] | None = None
    rating: NDArray[np.float32] | None = None
    clicked: Mask | None = None
    exposed: Mask | None = None
    propensity: NDArray[np.float64] | None = None
    position: NDArray[np.int32] | None = None
    randomised: Mask | None = None
    step: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        for name, column in self.columns().items():
            if len(column) != len(self.user):
                raise ValueError(f"column {name} has {len(column)} rows, user has {len(self.user)}")
            column.flags.writeable = False

    @classmethod
    def read(
        cls,
        source: Log,
        format: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        time_unit: str | None = None,
        encoding: str = "utf-8",
        query: str | None = None,
        even_one: bool = False,
    ) -> Self:
        """Read a log from a file, a packed folder, the name of a fetched data set, a database URL with a `query`, or
        a frame of pandas or polars with the same columns as a file.

        `format` is found by content where it is not named; `columns` names the file's own columns, e.g.
        `{"user": "customer", "time": "bought_at"}`; `time_unit` is s, ms, us, ns, iso or order. A log of one user or
        one item is an error, unless `even_one` is enough: to ask a model about, say.
        """
        from unveil.data.readers import read
        from unveil.data.readers.table import ReadOptions

        log = read(source, ReadOptions(format, dict(columns or {}), time_unit, encoding, query), even_one=even_one)
        return log if isinstance(log, cls) else cls(**vars(log))

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> Self:
        """Index a frame with string columns `user` and `item` and any of the `OPTIONAL` columns, already typed."""
        (user, users), (item, items) = side_by_side(indexed, (frame["user"], frame["item"]))
        rest = {name: _array(frame[name], kind) for name, kind in OPTIONAL.items() if name in frame.columns}
        return cls(user, item, users, items, **rest)

    def to_frame(self) -> pl.DataFrame:
        """The log with its raw ids, in file order; the inverse of `from_frame`."""
        ids = {"user": self.users.raw(self.user), "item": self.items.raw(self.item)}
        return pl.DataFrame({**ids, **self.optional()})

    def __len__(self) -> int:
        return len(self.user)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interactions):
            return NotImplemented
        return all(mine == theirs for mine, theirs in zip_longest(self.content(), other.content()))

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        sizes = (len(self), "event"), (len(self.users), "user"), (len(self.items), "item")
        return ", ".join(quantity(count, noun) for count, noun in sizes)

    def __repr__(self) -> str:
        extra = f" with {', '.join(self.optional())}" if self.optional() else ""
        return f"Interactions({self}{extra})"

    def optional(self) -> dict[str, NDArray[Any]]:
        return {name: column for name in OPTIONAL if (column := getattr(self, name)) is not None}

    def columns(self) -> dict[str, NDArray[Any]]:
        return {"user": self.user, "item": self.item, **self.optional()}

    def where(self, keep: NDArray[Any]) -> "Interactions":
        """The rows that a mask or an array of row numbers picks; vocabularies unchanged."""
        picked = {name: column[keep] for name, column in self.columns().items()}
        return Interactions(users=self.users, items=self.items, **picked)

    def compact(self) -> "Interactions":
        """The same log with vocabularies of only those users and items that occur in it."""
        user, users = _compacted(self.user, self.users)
        item, items = _compacted(self.item, self.items)
        return Interactions(user, item, users, items, **self.optional())

    def interacted(self) -> "Interactions":
        """The interactions: every row, or those with `clicked` where the log also has impressions without a click."""
        return self if self.clicked is None else self.where(self.clicked)

    def skipped(self) -> "Interactions":
        """The impressions without a click: none unless the log has a `clicked` column."""
        return self.where(np.zeros(len(self), bool) if self.clicked is None else ~self.clicked)

    def within_interacted(self) -> "Interactions":
        """The users and items with interactions, and the impressions of these; vocabularies of these alone."""
        clicked = self.interacted()
        return self.where(np.isin(self.user, clicked.user) & np.isin(self.item, clicked.item)).compact()

    def order(self) -> Index:
        """Row numbers by user, then time (or step where there is no time); ties stay in file order."""
        return sorted_rows(self.user, self.step if self.time is None else self.time, len(self.users))

    def histories(self) -> "Sequences | None":
        """The histories, where they are stored already: those of a packed log are."""
        return None

    def fingerprint(self) -> str:
        """A hash of the whole content, to tell whether two runs saw the same log."""
        digest = sha256()
        for chunk in self.content():
            digest.update(chunk)
        return digest.hexdigest()

    def content(self) -> Iterator[bytes]:
        """All that the log is, in pieces: the ids, then each column under its name."""
        for ids in (self.users.ids, self.items.ids):
            for part in blocks(len(ids)):
                yield (b"\0" if part.start else b"") + "\0".join(ids[part]).encode()
        for name, column in self.columns().items():
            yield name.encode()
            yield from (part.tobytes() for part in walked(column))


def named_source(source: Log) -> str:
    """What messages call it."""
    return str(source) if isinstance(source, str | Path) else "the frame"


def _compacted(index: Index, vocabulary: Vocabulary) -> tuple[Index, Vocabulary]:
    present = counted(index, len(vocabulary)) > 0
    if present.all():
        return index, vocabulary
    place = np.cumsum(present, dtype=np.int32) - 1
    return place[index].astype(np.int32), Vocabulary.of_sorted(vocabulary.ids.filter(pl.Series(present)))


def _array(column: pl.Series, kind: np.dtype[Any]) -> NDArray[Any]:
    if column.null_count() and kind.kind != "f":
        raise UnveilError("empty cells in an optional column", where=column.name, expected="a value in every row")
    return np.asarray(column.to_numpy(), dtype=kind)


assert [field.name for field in fields(Interactions)][4:] == list(OPTIONAL)


Offsets = NDArray[np.int64]

BLOCK = 1 << 22  # Events looked at together by those who go through all of them
_COLUMNS = ("item_N", "step_N", "event_N")


@dataclass(frozen=True, eq=False)
class Sequences:
    """Histories one after another: user u owns the events `offset_U1[u]` to `offset_U1[u + 1]`, oldest first.

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
        return np.diff(self.offset_U1)

    @property
    def user_N(self) -> Index:
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.length_U)

    @property
    def time_N(self) -> NDArray[np.int64] | None:
        """When each event was, looked up anew: most who hold sequences never ask."""
        return None if self.clock is None else gathered(self.clock, self.event_N)

    @property
    def count_V(self) -> NDArray[np.int64]:
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
    """Where histories of these lengths begin and end one after another."""
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
