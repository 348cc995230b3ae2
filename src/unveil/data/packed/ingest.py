"""From Parquet files to flat columns: the files of one log, found and checked; their clock; one pass over all rows.

A slice of rows is in memory at a time, ids are coded as they come; what stays is one entry for each different id.
"""

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import numpy as np
import polars as pl

from unveil.data.indexing import Index, Vocabulary, in_order
from unveil.data.mapped import column_file
from unveil.data.packed.log import KINDS, Columns, Progress
from unveil.data.readers import check_not_trivial, reading
from unveil.data.readers import table as typed
from unveil.data.readers.lines import parquet_errors
from unveil.errors import UnveilError

SLICE = 1 << 20  # Rows of a file held at once
MOST = 2**31 - 1  # Rows are numbered in 32 bits, here as in memory
LARGEST = 1 << 26  # Whole numbers up to this are their own code; beyond it a table of them would be too large


@dataclass(frozen=True)
class Parts:
    """The files of one log in the order of their rows; all have the same columns."""

    rows: Mapping[Path, int]  # of each file
    names: Mapping[str, str]  # role → the files' own column
    kinds: Mapping[str, pl.DataType]  # of the first file; numbers may be wider in another

    @classmethod
    def of(cls, sources: Sequence[str | Path], columns: Mapping[str, str]) -> "Parts":
        """Look into every file before any is read: what does not fit is an error at once."""
        schemas, rows = {}, {}
        for path in _found(sources):
            with reading(path), parquet_errors(path):
                if not path.stat().st_size:
                    raise UnveilError("the file is empty", where=path, expected="a Parquet file", hint="Leave it out.")
                with path.open("rb") as file:
                    start = file.read(40)
                if not start.startswith(b"PAR1"):
                    found = f"a file that begins with {start.splitlines()[0].decode('ascii', 'backslashreplace')!r}"
                    hint = f"Convert it first: unveil data convert {path} -o {path.name.partition('.')[0]}.parquet."
                    raise UnveilError("not a Parquet file", where=path, found=found, expected="Parquet", hint=hint)
                scan = pl.scan_parquet(path, glob=False)
                schemas[path] = scan.collect_schema()
                rows[path] = int(scan.select(pl.len()).collect().item())
        first = next(iter(schemas))
        if not sum(rows.values()):
            raise UnveilError("no rows", where=first, expected="at least one event", hint="Check the files.")
        names = {path: typed.assign_roles(list(schema), columns, path) for path, schema in schemas.items()}
        for path, schema in schemas.items():
            mine, theirs = _described(names[first], schemas[first]), _described(names[path], schema)
            if role := next((role for role in {**mine, **theirs} if mine.get(role) != theirs.get(role)), None):
                problem = f"the files of one log need the same columns, and the {role} differs"
                found, expected = theirs.get(role, "none"), f"{mine.get(role, 'none')}, as in {first}"
                hint = f"Write the files alike, or leave the column out with --{role}-col none."
                raise UnveilError(problem, where=path, found=found, expected=expected, hint=hint)
        return cls(rows, names[first], {role: schemas[first][name] for role, name in names[first].items()})

    def __len__(self) -> int:
        return sum(self.rows.values())

    def tables(self, roles: Sequence[str]) -> Iterator[typed.Table]:
        names = {role: self.names[role] for role in roles}
        for path, rows in self.rows.items():
            with reading(path):
                scan = pl.scan_parquet(path, glob=False).select(**names)
                for start in range(0, rows, SLICE):
                    with parquet_errors(path):
                        frame = scan.slice(start, SLICE).collect()
                    yield typed.Table(path, frame, names, (start + 1).__add__)


def _described(names: Mapping[str, str], schema: pl.Schema) -> dict[str, str]:
    """Each role's column: its name, and what its values are, whatever their width."""
    described = {}
    for role, name in names.items():
        kind = schema[name]
        text = "text" if kind in (pl.String, pl.Categorical, pl.Enum) else str(kind)
        values = "whole numbers" if kind.is_integer() else "numbers" if kind.is_float() else text
        described[role] = f"{name} ({values})"
    return described


def _found(sources: Sequence[str | Path]) -> list[Path]:
    paths = [path for source in sources for path in _files(source)]
    seen = set[Path]()
    for path in paths:
        if (real := path.resolve()) in seen:
            raise UnveilError("named twice: its events would count double", where=path, hint="Name it once.")
        seen.add(real)
    return paths


def _files(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        # Names that begin so are of files, and folders of them, that others are still writing or left half-written.
        unfinished = ("_", ".")
        found = ((inner, inner.relative_to(path).parts) for inner in path.rglob("*.parquet"))
        paths = sorted(inner for inner, names in found if not any(name.startswith(unfinished) for name in names))
        problem, hint = "a folder without Parquet files", "Name a folder of .parquet files."
    else:
        paths = [Path(name) for name in sorted(glob.glob(str(source), recursive=True))]
        problem, hint = "no such file, and no file fits it as a pattern", "Check the path; put a pattern in quotes."
    files = [inner for inner in paths if inner.is_file()]
    if not files:
        raise UnveilError(problem, where=source, hint=hint)
    return files


@dataclass(frozen=True)
class Clock:
    """The unit of all times, and what else a slice cannot know of the whole column."""

    unit: str | None  # None: times with a type of their own, or no times at all
    largest: float = 0.0  # magnitude from which the unit follows; 0: it was given
    fractions: bool = False  # numbers written as text, some of them not whole: all are read as such

    def fit(self, table: typed.Table) -> typed.Table:
        """A slice, its numbers as the whole column has them; one that has another unit is an error."""
        if "time" not in table.frame.columns:
            return table
        if self.fractions:
            numbers = table.frame["time"].str.strip_chars().cast(pl.Float64, strict=False)
            table = replace(table, frame=table.frame.with_columns(numbers.alias("time")))
        if self.largest and not (column := table.frame["time"]).null_count():
            typed.check_one_unit(table, typed.number_of(column) if column.dtype == pl.String else column, self.largest)
        return table


def clock_of(parts: Parts, unit: str | None, progress: Progress) -> Clock:
    """The clock of a log: as given, or found from all times, as `table.times` does of a column in memory."""
    kind = parts.kinds.get("time")
    text = kind == pl.String
    if kind is None or not (text or kind.is_numeric()) or unit == "iso" or (unit and not text):
        return Clock(unit)
    largest, dates, not_whole, not_number, not_iso = 0.0, True, 0, 0, 0
    columns = (table.frame["time"] for table in parts.tables(["time"]))
    for column in progress.through("clock", columns, len(parts), len):
        number = typed.number_of(column) if text else column
        largest = max(largest, typed.largest_of(number))
        dates = dates and (not len(number) or typed.are_dates(number))
        if text:
            not_whole += column.str.strip_chars().cast(pl.Int64, strict=False).null_count()
            not_number += number.null_count()
            not_iso += typed.of_iso(column).null_count() if unit is None else 0
    if unit is not None:
        return Clock(unit, fractions=not_whole > 0)
    if dates or (not_number and not_iso <= not_number):
        return Clock("iso")
    return Clock(typed.unit_of(largest), largest if isfinite(largest) else 0.0, fractions=not_whole > 0)


class Numbers:
    """Codes for ids that are small whole numbers: an id is its own code."""

    def __init__(self, role: str, largest: int) -> None:
        self.role, self._seen = role, np.zeros(largest + 1, np.bool_)

    def code(self, table: typed.Table) -> Index:
        typed.check_missing_ids(table, self.role)
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

    def code(self, table: typed.Table) -> Index:
        raw = typed.ids(table, self.role)
        typed.check_blank_ids(table, self.role)
        return raw.cast(pl.Categorical(self._categories)).to_physical().to_numpy().astype(np.int32)

    def finish(self) -> tuple[Index, Vocabulary]:
        known = self._categories.to_series()
        return in_order(np.arange(len(known)), known)


def write_columns(parts: Parts, clock: Clock, folder: Path, progress: Progress) -> Columns:
    """Write every column of the log, ids as indices into sorted vocabularies."""
    if (size := len(parts)) > MOST:
        expected, hint = f"at most {MOST:,}", "Pack a part of it, such as the last years."
        raise UnveilError("too many events for one log", found=f"{size:,}", expected=expected, hint=hint)
    roles = tuple(role for role in typed.ROLES if role in parts.kinds)
    coders = {role: _coder(parts, role) for role in ("user", "item")}
    with ExitStack() as files:
        append = {role: files.enter_context(column_file(folder / f"{role}.npy", KINDS[role], size)) for role in roles}
        for table in progress.through("ingest", parts.tables(roles), size, lambda table: len(table.frame)):
            for role, coder in coders.items():
                append[role](coder.code(table))
            for column in typed.optional(clock.fit(table), clock.unit):
                append[column.name](column.to_numpy())
    (user_place, users), (item_place, items) = (coder.finish() for coder in coders.values())
    check_not_trivial(users, items, next(iter(parts.rows)).parent)
    columns = Columns(folder, roles, users, items)
    for role, place in (("user", user_place), ("item", item_place)):
        columns.rewrite(role, len(columns), (place[code_B] for _, (code_B,) in columns.blocks(role)))
    return columns


def _coder(parts: Parts, role: str) -> Numbers | Text:
    """Whole numbers by their range, which Parquet files mostly state; anything else as text."""
    if not parts.kinds[role].is_integer():
        return Text(role)
    column = pl.col(parts.names[role])
    files = (pl.scan_parquet(path, glob=False) for path, rows in parts.rows.items() if rows)
    ends = [file.select(low=column.min(), high=column.max()).collect().row(0) for file in files]
    low, high = min((low for low, _ in ends if low is not None), default=0), max((high or 0 for _, high in ends))
    return Numbers(role, high) if 0 <= low <= high <= LARGEST else Text(role)
