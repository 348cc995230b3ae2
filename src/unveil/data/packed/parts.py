"""The Parquet files of one log: found, checked to have the same columns, read a slice at a time; and their clock."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import polars as pl

from unveil.data.packed.log import Progress
from unveil.data.readers import reading
from unveil.data.readers.columns import assign_roles
from unveil.data.readers.lines import BROKEN_PARQUET, damaged
from unveil.data.readers.table import (
    Table,
    are_dates,
    check_one_unit,
    counted_from,
    largest_of,
    number_of,
    of_iso,
    unit_of,
)
from unveil.errors import UnveilError

#: Rows of a file held at once.
SLICE = 1 << 20


@dataclass(frozen=True)
class Part:
    """One file: how many rows it has, and the type of the column of each role."""

    path: Path
    rows: int
    names: Mapping[str, str]  # role → the file's own column
    kinds: Mapping[str, pl.DataType]

    @classmethod
    def of(cls, path: Path, columns: Mapping[str, str]) -> "Part":
        """Look into a file."""
        with reading(path):
            if not path.stat().st_size:
                raise UnveilError("the file is empty", where=path, expected="a Parquet file", hint="Leave it out.")
            try:
                scan = pl.scan_parquet(path, glob=False)
                schema = scan.collect_schema()
                rows = int(scan.select(pl.len()).collect().item())
            except BROKEN_PARQUET as error:
                raise damaged(path, error) from None
        listed = list(schema)
        names = {role: listed[place] for role, place in assign_roles(listed, columns, path).items()}
        return cls(path, rows, names, {role: schema[name] for role, name in names.items()})

    def tables(self, roles: Sequence[str]) -> Iterator[Table]:
        """The columns of these roles, a slice of rows at a time."""
        names = {role: self.names[role] for role in roles}
        with reading(self.path):
            scan = pl.scan_parquet(self.path, glob=False).select(**{role: pl.col(name) for role, name in names.items()})
            for start in range(0, self.rows, SLICE):
                try:
                    frame = scan.slice(start, SLICE).collect()
                except BROKEN_PARQUET as error:
                    raise damaged(self.path, error) from None
                yield Table(self.path, frame, names, counted_from(start + 1))

    def columns(self) -> dict[str, str]:
        """Each role's column: its name, and what its values are, whatever their width."""
        return {role: f"{self.names[role]} ({_values(kind)})" for role, kind in self.kinds.items()}


def _values(kind: pl.DataType) -> str:
    if kind.is_integer():
        return "whole numbers"
    if kind.is_float():
        return "numbers"
    return "text" if kind in (pl.String, pl.Categorical, pl.Enum) else str(kind)


@dataclass(frozen=True)
class Parts:
    """The files of one log, in the order of their rows."""

    files: tuple[Part, ...]

    @classmethod
    def of(cls, sources: Sequence[str | Path], columns: Mapping[str, str]) -> "Parts":
        """Look into every file before any is read: what does not fit is an error at once."""
        first, *others = files = tuple(Part.of(path, columns) for path in _found(sources))
        for other in others:
            _check_alike(first, other)
        if not sum(part.rows for part in files):
            raise UnveilError("no rows", where=first.path, expected="at least one event", hint="Check the files.")
        return cls(files)

    def __len__(self) -> int:
        return sum(part.rows for part in self.files)

    @property
    def kinds(self) -> Mapping[str, pl.DataType]:
        """The type of each role's column."""
        return self.files[0].kinds

    def tables(self, roles: Sequence[str]) -> Iterator[Table]:
        """The columns of these roles through all files, a slice of rows at a time."""
        for part in self.files:
            yield from part.tables(roles)


def _check_alike(first: Part, other: Part) -> None:
    mine, theirs = first.columns(), other.columns()
    if role := next((role for role in {**mine, **theirs} if mine.get(role) != theirs.get(role)), None):
        raise UnveilError(
            f"the files of one log need the same columns, and the {role} differs",
            where=other.path,
            found=theirs.get(role, "none"),
            expected=f"{mine.get(role, 'none')}, as in {first.path}",
            hint=f"Write the files alike, or leave the column out with --{role}-col none.",
        )


def _found(sources: Sequence[str | Path]) -> list[Path]:
    """The files that are meant, those of a folder or a pattern in the order of their paths."""
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
        paths = sorted(inner for inner in path.rglob("*.parquet") if not _is_unfinished(inner.relative_to(path)))
        problem, hint = "a folder without Parquet files", "Name a folder of .parquet files."
    else:
        paths = [Path(name) for name in sorted(glob.glob(str(source), recursive=True))]
        problem, hint = "no such file, and no file fits it as a pattern", "Check the path; put a pattern in quotes."
    files = [inner for inner in paths if inner.is_file()]
    if not files:
        raise UnveilError(problem, where=source, hint=hint)
    return files


def _is_unfinished(path: Path) -> bool:
    """What others are still writing, or left half-written: they name such files, and folders of them, so."""
    return any(name.startswith(("_", ".")) for name in path.parts)


@dataclass(frozen=True)
class Clock:
    """The unit of all times, and what else a slice cannot know of the whole column."""

    unit: str | None  # None: times with a type of their own, or no times at all
    largest: float = 0.0  # magnitude from which the unit follows; 0: it was given
    fractions: bool = False  # numbers written as text, some of them not whole: all are read as such

    def fit(self, table: Table) -> Table:
        """A slice, its numbers as the whole column has them; one that has another unit is an error."""
        if "time" not in table.frame.columns:
            return table
        if self.fractions:
            numbers = table.frame["time"].str.strip_chars().cast(pl.Float64, strict=False)
            table = replace(table, frame=table.frame.with_columns(numbers.alias("time")))
        if self.largest and not table.frame["time"].null_count():
            column = table.frame["time"]
            check_one_unit(table, number_of(column) if column.dtype == pl.String else column, self.largest)
        return table


def clock_of(parts: Parts, unit: str | None, progress: Progress) -> Clock:
    """The clock of a log: as given, or found from all times."""
    kind = parts.kinds.get("time")
    if kind is None or not (kind.is_numeric() or kind == pl.String):
        return Clock(unit)
    columns = progress.through("judge", _columns(parts), len(parts), len)
    if kind == pl.String:
        return Clock(unit) if unit == "iso" else _of_text(parts, columns, unit)
    return Clock(unit) if unit else _of_numbers(columns)


def _columns(parts: Parts) -> Iterator[pl.Series]:
    return (table.frame["time"] for table in parts.tables(["time"]))


def _of_text(parts: Parts, columns: Iterator[pl.Series], unit: str | None) -> Clock:
    """ISO 8601 where more of the column is that than numbers."""
    not_whole = not_number = not_iso = 0
    for column in columns:
        not_whole += column.str.strip_chars().cast(pl.Int64, strict=False).null_count()
        not_number += number_of(column).null_count()
        not_iso += of_iso(column).null_count() if unit is None else 0
    if unit is not None:
        return Clock(unit, fractions=not_whole > 0)
    if not_number and not_iso <= not_number:
        return Clock("iso")
    clock = _of_numbers(number_of(column) for column in _columns(parts))
    return clock if clock.unit == "iso" else replace(clock, fractions=not_whole > 0)


def _of_numbers(columns: Iterator[pl.Series]) -> Clock:
    """Eight-digit dates, or numbers of the unit that the largest suggests."""
    largest, dates = 0.0, True
    for column in columns:
        largest = max(largest, largest_of(column))
        dates = dates and (not len(column) or are_dates(column))
    if dates:
        return Clock("iso")
    return Clock(unit_of(largest), largest if isfinite(largest) else 0.0)
