"""How to read the times of a log in many files: judged over all of them before the first is read.

A file in memory is judged by its whole column (see `sources.times`). Here the column is gone through once, and only
what the judgement needs is kept, so that a slice is read as it would be in the whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite

import polars as pl

from unveil.data.packed.parts import Parts
from unveil.data.packed.progress import Progress
from unveil.data.sources.table import Table
from unveil.data.sources.times import are_dates, judged, largest_of, number_of, of_iso, refuse_mixed


@dataclass(frozen=True)
class Clock:
    """The unit of all times, and what else a slice cannot know of the whole column."""

    unit: str | None  # None: times with a type of their own, or no times at all
    largest: float = 0.0  # magnitude by which the unit was judged; 0: it was given
    fractions: bool = False  # numbers written as text, some of them not whole: all are read as such

    def fit(self, table: Table) -> Table:
        """A slice, its numbers as the whole column has them; one that has another unit is refused."""
        if "time" not in table.frame.columns:
            return table
        if self.fractions:
            numbers = table.frame["time"].str.strip_chars().cast(pl.Float64, strict=False)
            table = replace(table, frame=table.frame.with_columns(numbers.alias("time")))
        if self.largest and not table.frame["time"].null_count():
            column = table.frame["time"]
            refuse_mixed(table, number_of(column) if column.dtype == pl.String else column, self.largest)
        return table


def clock_of(parts: Parts, unit: str | None, progress: Progress) -> Clock:
    """The clock of a log: as given, or judged."""
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
    return Clock(judged(largest), largest if isfinite(largest) else 0.0)
