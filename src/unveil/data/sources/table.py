"""What a format's reader hands on: columns by role, as the file has them, and where each row stands in the file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import polars as pl

from unveil.errors import UnveilError


def counted_from(first: int) -> Callable[[int], int]:
    """Row numbers for a source with one row a line, the first at `first`."""
    return partial(int.__add__, first)


@dataclass(frozen=True)
class Table:
    """One source, not yet typed. `names` gives the file's own name of each role's column."""

    source: object
    frame: pl.DataFrame
    names: Mapping[str, str]
    line: Callable[[int], int]  # frame row → the line an editor shows, or the row of a source without lines

    def where(self, role: str, row: int | None = None) -> str:
        """The place to name in an error."""
        place = "" if row is None else f", row {self.line(row)}"
        return f"{self.source}{place}, column {self.names[role]}"

    def refuse(self, role: str, bad: pl.Series, problem: str, expected: str, hint: str | None = None) -> None:
        """Raise an error about the first row that is bad, if there is one."""
        row = bad.arg_max() if bad.any() else None
        if row is not None:
            value = self.frame[role][row]
            empty = value is None or value == ""
            said = f"{problem}, the cell is empty" if empty else problem
            found = None if empty else value
            raise UnveilError(said, where=self.where(role, row), found=found, expected=expected, hint=hint)
