"""Attributes of items, and conditions on them: `name=value`, `name!=value`, or numbers with <, <=, > or >=.

A cell may hold several values: a list, or text with | between them; and an item may have several rows. A condition
holds if any value of any row matches, != if none is equal. Two conditions may be met by different rows.
"""

import operator
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl

from unveil.data.readers.lines import parquet_errors
from unveil.data.readers.table import item_column
from unveil.errors import UnveilError, unknown

_CONDITION = re.compile(r"\s*([^=<>!]+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARISONS: dict[str, Any] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, eq=False)
class Attributes:
    """A frame with the column `item_id` and one column an attribute."""

    frame: pl.DataFrame

    @classmethod
    def read(cls, path: Path) -> Self:
        """A CSV, TSV or Parquet file with a column of item ids."""
        frame = _read(path)
        place = item_column(frame.columns)
        if place is None:
            found, expected = ", ".join(frame.columns), "item_id or another usual name of it"
            hint = "Call it item_id in the first line of the file."
            raise UnveilError("no column of item ids", where=path, found=found, expected=expected, hint=hint)
        name = frame.columns[place]
        try:
            ids = pl.col(name).cast(pl.String).alias("item_id")
            return cls(frame.select(ids, pl.all().exclude(name, "item_id")))
        except pl.exceptions.PolarsError:
            found, expected = str(frame.schema[name]), "text or whole numbers"
            raise UnveilError("not ids", where=f"{path}, column {name}", found=found, expected=expected) from None

    def matching(self, conditions: list[str]) -> list[str]:
        holds = {f"holds {nth}": self._holds(condition) for nth, condition in enumerate(conditions)}
        try:
            items = self.frame.group_by("item_id", maintain_order=True).agg(**holds)
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise UnveilError(f"values that cannot be compared: {reason}", where="; ".join(conditions)) from None
        return items.filter(pl.all_horizontal(pl.lit(True), *holds))["item_id"].to_list()

    def _holds(self, condition: str) -> pl.Expr:
        """Whether the condition holds for an item, over its rows. An empty cell matches nothing."""
        parts = _CONDITION.fullmatch(condition)
        if parts is None:
            expected = "an attribute, a sign and a value, e.g. genre=Drama or year>=1990"
            raise UnveilError("not a condition", found=condition, expected=expected)
        name, sign, value = parts.groups()
        if name not in self.frame.columns:
            raise unknown("attribute", name, [each for each in self.frame.columns if each != "item_id"])
        kind, cell = self.frame.schema[name], pl.col(name)
        if sign in _COMPARISONS:
            number = cell if kind.is_numeric() else cell.cast(pl.String).cast(pl.Float64, strict=False)
            number = number.cast(pl.Float64).fill_nan(None)  # NaN would be larger than every number
            matches: pl.Expr = _COMPARISONS[sign](number, _number(value, condition))
        elif kind.is_numeric():
            matches = cell == _number(value, condition)
        elif isinstance(kind, pl.List | pl.Array):
            matches = cell.cast(pl.List(pl.String)).list.contains(value)
        else:
            matches = cell.cast(pl.String).str.split("|").list.contains(value)
        any_matches = matches.fill_null(False).any()
        return ~any_matches if sign == "!=" else any_matches


def _number(text: str, condition: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnveilError("not a number", where=condition, found=text, expected="a number to compare with") from None


def _read(path: Path) -> pl.DataFrame:
    try:
        if path.suffix == ".parquet":
            with parquet_errors(path):
                return pl.read_parquet(path)
        if path.suffix in (".csv", ".tsv"):
            with path.open("rb") as file:
                first = file.readline()  # its most frequent separator: some spreadsheets write semicolons
            separator = "\t" if path.suffix == ".tsv" else max(",;\t", key=lambda sign: first.count(sign.encode()))
            return pl.read_csv(path, separator=separator, infer_schema=False)  # as written: 0104257 keeps its zero
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UnveilError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=path) from None
    raise UnveilError("unknown kind of file", where=path, found=path.suffix, expected="one of .csv, .tsv, .parquet")
