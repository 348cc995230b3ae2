"""From Parquet files to flat columns: one pass, a slice of rows in memory at a time."""

from contextlib import ExitStack
from pathlib import Path

import polars as pl

from unveil.data.mapped import column_file
from unveil.data.packed.clock import Clock
from unveil.data.packed.coders import Coder, coder_of
from unveil.data.packed.columns import KINDS, Columns, column_path, recoded
from unveil.data.packed.parts import Parts
from unveil.data.packed.progress import Progress
from unveil.data.sources.columns import ROLES
from unveil.data.sources.reading import refuse_trivial
from unveil.data.sources.typed import optional
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError

#: Rows are numbered in 32 bits, here as in memory.
MOST = 2**31 - 1


def ingest(parts: Parts, clock: Clock, folder: Path, progress: Progress) -> Columns:
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
