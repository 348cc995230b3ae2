"""Interactions: an immutable log of users, items and times, in dense indices, with the raw ids beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.data.indexing import Index, Vocabulary, counted, indexed, side_by_side, sorted_rows
from unveil.data.mapped import blocks, walked
from unveil.errors import UnveilError
from unveil.wording import quantity

if TYPE_CHECKING:
    from unveil.data.sequences import Sequences

Mask = NDArray[np.bool_]

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
        source: str | Path,
        format: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        time_unit: str | None = None,
        encoding: str = "utf-8",
        query: str | None = None,
        even_one: bool = False,
    ) -> Self:
        """Read a log from a file, a packed folder, the name of a fetched data set, or a database URL with a `query`.

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
        """The optional columns this log has."""
        return {name: column for name in OPTIONAL if (column := getattr(self, name)) is not None}

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns this log has."""
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


def _compacted(index: Index, vocabulary: Vocabulary) -> tuple[Index, Vocabulary]:
    present = counted(index, len(vocabulary)) > 0
    if present.all():
        return index, vocabulary
    place = np.cumsum(present, dtype=np.int32) - 1
    return place[index].astype(np.int32), vocabulary.subset(np.flatnonzero(present).astype(np.int32))


def _array(column: pl.Series, kind: np.dtype[Any]) -> NDArray[Any]:
    if column.null_count() and kind.kind != "f":
        raise UnveilError("empty cells in an optional column", where=column.name, expected="a value in every row")
    return np.asarray(column.to_numpy(), dtype=kind)


assert [field.name for field in fields(Interactions)][4:] == list(OPTIONAL)
