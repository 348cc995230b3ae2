"""From Parquet files to flat columns: one pass, a slice of rows in memory at a time, ids coded as they come."""

from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from unveil.data.mapped import column_file
from unveil.data.packed.folder import KINDS, Columns, Progress, column_path, recoded
from unveil.data.packed.parts import Clock, Parts
from unveil.data.readers import refuse_trivial
from unveil.data.readers.columns import ROLES
from unveil.data.readers.table import Table, ids, optional, refuse_blank_ids, refuse_missing_ids
from unveil.data.vocabulary import Index, Vocabulary
from unveil.errors import UnveilError

#: Whole numbers up to this are their own code; beyond it a table of them would be too large.
LARGEST = 1 << 26


class Coder(Protocol):
    """Codes for the ids of one role."""

    def code(self, table: Table) -> Index:
        """The codes of a slice of rows."""

    def finish(self) -> tuple[Index, Vocabulary]:
        """The place of each code in the vocabulary, and the vocabulary of all ids that came by."""


class Numbers:
    """Small whole numbers: an id is its own code."""

    def __init__(self, role: str, largest: int) -> None:
        self.role, self._seen = role, np.zeros(largest + 1, np.bool_)

    def code(self, table: Table) -> Index:
        """The numbers themselves."""
        refuse_missing_ids(table, self.role)
        code_N = table.frame[self.role].to_numpy().astype(np.int32)
        self._seen[code_N] = True
        return code_N

    def finish(self) -> tuple[Index, Vocabulary]:
        """In the order of their decimal form, as all ids are text."""
        present = np.flatnonzero(self._seen)
        return _in_order(present, pl.Series(present).cast(pl.String), len(self._seen))


class Text:
    """Any other ids: numbered as they are first seen."""

    def __init__(self, role: str) -> None:
        self.role, self._categories = role, pl.Categories.random()
        # Categories are forgotten with the last column that has them; this one stays.
        self._memory = pl.Series([], dtype=pl.Categorical(self._categories))

    def code(self, table: Table) -> Index:
        """The number that each id was given when it was first seen."""
        raw = ids(table, self.role)
        refuse_blank_ids(table, self.role)
        return raw.cast(pl.Categorical(self._categories)).to_physical().to_numpy().astype(np.int32)

    def finish(self) -> tuple[Index, Vocabulary]:
        """In the order of the text."""
        known = self._categories.to_series()
        return _in_order(np.arange(len(known)), known, len(known))


def coder_of(role: str, low: int | None, high: int | None) -> Coder:
    """The coder for ids between two numbers, or for text where there are none."""
    small = low is not None and high is not None and 0 <= low <= high <= LARGEST
    return Numbers(role, high or 0) if small else Text(role)


def _in_order(codes: np.typing.NDArray[np.int64], raw: pl.Series, size: int) -> tuple[Index, Vocabulary]:
    place = np.zeros(size, np.int32)
    order = raw.arg_sort().to_numpy()
    place[codes[order]] = np.arange(len(raw), dtype=np.int32)
    return place, Vocabulary.of_sorted(raw.gather(order))


#: Rows are numbered in 32 bits, here as in memory.
MOST = 2**31 - 1


def write_columns(parts: Parts, clock: Clock, folder: Path, progress: Progress) -> Columns:
    """Write every column of the log, ids as indices into sorted vocabularies."""
    if len(parts) > MOST:
        expected, hint = f"at most {MOST:,}", "Pack a part of it, such as the last years."
        raise UnveilError("too many events for one log", found=f"{len(parts):,}", expected=expected, hint=hint)
    roles = tuple(role for role in ROLES if role in parts.kinds)
    coders = {role: _coder(parts, role) for role in ("user", "item")}
    with ExitStack() as files:
        append = {
            role: files.enter_context(column_file(column_path(folder, role), KINDS[role], len(parts))) for role in roles
        }
        for table in progress.through("ingest", parts.tables(roles), len(parts), lambda table: len(table.frame)):
            for role, coder in coders.items():
                append[role](coder.code(table))
            for column in optional(clock.fit(table), clock.unit):
                append[column.name](column.to_numpy())
    users, items = (_indexed(coder, column_path(folder, role)) for role, coder in coders.items())
    refuse_trivial(users, items, parts.files[0].path.parent)
    return Columns(folder, roles, users, items)


def _coder(parts: Parts, role: str) -> Coder:
    """Whole numbers by their range, which Parquet files mostly state; anything else as text."""
    if not parts.kinds[role].is_integer():
        return coder_of(role, None, None)
    ends = [
        pl.scan_parquet(part.path, glob=False)
        .select(low=pl.col(part.names[role]).min(), high=pl.col(part.names[role]).max())
        .collect()
        .row(0)
        for part in parts.files
        if part.rows
    ]
    lows, highs = ([end for end in side if end is not None] for side in zip(*ends, strict=True))
    return coder_of(role, min(lows, default=0), max(highs, default=0))


def _indexed(coder: Coder, path: Path) -> Vocabulary:
    place, vocabulary = coder.finish()
    recoded(path, place)
    return vocabulary
