"""From Parquet files to flat columns: one pass, a slice of rows in memory at a time, ids coded as they come.

What stays in memory is one entry for each different id.
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import polars as pl

from unveil.data.indexing import in_order
from unveil.data.mapped import column_file
from unveil.data.packed.log import KINDS, Columns, Progress
from unveil.data.packed.parts import Clock, Parts
from unveil.data.readers import check_not_trivial
from unveil.data.readers.columns import ROLES
from unveil.data.readers.table import Table, check_blank_ids, check_missing_ids, ids, optional
from unveil.data.vocabulary import Index, Vocabulary
from unveil.errors import UnveilError

#: Rows are numbered in 32 bits, here as in memory.
MOST = 2**31 - 1
#: Whole numbers up to this are their own code; beyond it a table of them would be too large.
LARGEST = 1 << 26


class Numbers:
    """Codes for ids that are small whole numbers: an id is its own code."""

    def __init__(self, role: str, largest: int) -> None:
        self.role, self._seen = role, np.zeros(largest + 1, np.bool_)

    def code(self, table: Table) -> Index:
        """The codes of a slice of rows."""
        check_missing_ids(table, self.role)
        code_N = table.frame[self.role].to_numpy().astype(np.int32)
        self._seen[code_N] = True
        return code_N

    def finish(self) -> tuple[Index, Vocabulary]:
        """The place of each code in the vocabulary, and the vocabulary of all ids that came by."""
        present = np.flatnonzero(self._seen)
        return in_order(present, pl.Series(present).cast(pl.String))


class Text:
    """Codes for any other ids: numbered as they are first seen."""

    def __init__(self, role: str) -> None:
        self.role, self._categories = role, pl.Categories.random()
        # Categories are forgotten with the last column that has them; this one stays.
        self._memory = pl.Series([], dtype=pl.Categorical(self._categories))

    def code(self, table: Table) -> Index:
        """The codes of a slice of rows."""
        raw = ids(table, self.role)
        check_blank_ids(table, self.role)
        return raw.cast(pl.Categorical(self._categories)).to_physical().to_numpy().astype(np.int32)

    def finish(self) -> tuple[Index, Vocabulary]:
        """The place of each code in the vocabulary, and the vocabulary of all ids that came by."""
        known = self._categories.to_series()
        return in_order(np.arange(len(known)), known)


def write_columns(parts: Parts, clock: Clock, folder: Path, progress: Progress) -> Columns:
    """Write every column of the log, ids as indices into sorted vocabularies."""
    if len(parts) > MOST:
        expected, hint = f"at most {MOST:,}", "Pack a part of it, such as the last years."
        raise UnveilError("too many events for one log", found=f"{len(parts):,}", expected=expected, hint=hint)
    roles = tuple(role for role in ROLES if role in parts.kinds)
    coders = {role: _coder(parts, role) for role in ("user", "item")}
    with ExitStack() as files:
        append = {
            role: files.enter_context(column_file(folder / f"{role}.npy", KINDS[role], len(parts))) for role in roles
        }
        for table in progress.through("ingest", parts.tables(roles), len(parts), lambda table: len(table.frame)):
            for role, coder in coders.items():
                append[role](coder.code(table))
            for column in optional(clock.fit(table), clock.unit):
                append[column.name](column.to_numpy())
    (user_place, users), (item_place, items) = (coder.finish() for coder in coders.values())
    check_not_trivial(users, items, parts.files[0].path.parent)
    columns = Columns(folder, roles, users, items)
    for role, place in (("user", user_place), ("item", item_place)):
        columns.rewrite(role, len(columns), (place[code_B] for _, (code_B,) in columns.blocks(role)))
    return columns


def _coder(parts: Parts, role: str) -> Numbers | Text:
    """Whole numbers by their range, which Parquet files mostly state; anything else as text."""
    if not parts.kinds[role].is_integer():
        return Text(role)
    ends = [
        pl.scan_parquet(part.path, glob=False)
        .select(low=pl.col(part.names[role]).min(), high=pl.col(part.names[role]).max())
        .collect()
        .row(0)
        for part in parts.files
        if part.rows
    ]
    low, high = min((low for low, _ in ends if low is not None), default=0), max((high or 0 for _, high in ends))
    return Numbers(role, high) if 0 <= low <= high <= LARGEST else Text(role)
