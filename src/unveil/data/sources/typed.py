"""From a file's own columns to the typed columns of a log. What does not fit is an error that names the row."""

from collections.abc import Callable

import polars as pl

from unveil.data.interactions import Interactions
from unveil.data.sources.table import Table
from unveil.data.sources.times import times
from unveil.errors import UnveilError

_TRUTH = {"1": True, "true": True, "t": True, "yes": True, "0": False, "false": False, "f": False, "no": False}
_CLEAN = "Correct the row, or take it out."
_LEAVE = "Correct the row, or leave the column out with --{}-col none."


def typed(table: Table, time_unit: str | None) -> pl.DataFrame:
    """The frame that `Interactions.from_frame` takes."""
    return pl.DataFrame([ids(table, "user"), ids(table, "item"), *optional(table, time_unit)])


def optional(table: Table, time_unit: str | None) -> list[pl.Series]:
    """All columns but the ids."""
    return [
        (times(table, time_unit) if role == "time" else _KINDS[role](table, role)).alias(role)
        for role in table.frame.columns
        if role == "time" or role in _KINDS
    ]


def ids(table: Table, role: str) -> pl.Series:
    """Ids as strings, exactly as written; whole numbers in their decimal form."""
    column = table.frame[role]
    refuse_missing_ids(table, role)
    if column.dtype.is_float() or column.dtype.is_decimal():
        number = column.cast(pl.Float64)
        odd = ~number.is_finite() | (number % 1 != 0) | (number.abs() >= 2**53)
        table.refuse(role, odd, "not an id", "text or a whole number", _CLEAN)
        column = number.cast(pl.Int64)
    elif not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise UnveilError(
            "not an id column", where=table.where(role), found=str(column.dtype), expected="text or whole numbers"
        )
    return column.cast(pl.String).alias(role)


def refuse_missing_ids(table: Table, role: str) -> None:
    """Cells with nothing in them."""
    column = table.frame[role]
    if column.null_count():
        table.refuse(role, column.is_null(), f"no {role}", "an id", _CLEAN)


def refuse_blank_ids(table: Table, role: str) -> None:
    """Ids of no characters."""
    table.refuse(role, table.frame[role].cast(pl.String) == "", f"no {role}", "an id", _CLEAN)


def refuse_empty_ids(table: Table, log: Interactions) -> None:
    """Ids of no characters. They come first in a vocabulary, so that no column has to be searched for them."""
    for role, vocabulary in (("user", log.users), ("item", log.items)):
        if vocabulary[0] == "":
            refuse_blank_ids(table, role)


def _numbers(table: Table, role: str, expected: str = "a number", *, but: pl.Series | None = None) -> pl.Series:
    """A finite number in every row `but` those, which get a 0."""
    column = table.frame[role]
    text = column.dtype == pl.String
    if not (text or column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise UnveilError(
            "not a column of numbers", where=table.where(role), found=str(column.dtype), hint=_LEAVE.format(role)
        )
    number = (column.str.strip_chars() if text else column).cast(pl.Float64, strict=False)
    if but is not None:
        number = number.zip_with(~but, pl.zeros(len(number), eager=True))
    if number.null_count():
        table.refuse(role, number.is_null(), "not a number", expected, _LEAVE.format(role))
    table.refuse(role, ~number.is_finite(), "not a finite number", expected, _LEAVE.format(role))
    return number


def _ratings(table: Table, role: str) -> pl.Series:
    """A rating of every event; what was shown and left may have none, which is NaN."""
    unrated = None if "clicked" not in table.frame.columns else ~_truths(table, "clicked") & _blank(table.frame[role])
    rating = _numbers(table, role, but=unrated).cast(pl.Float32)
    table.refuse(role, ~rating.is_finite(), "too large a rating", "a number", _LEAVE.format(role))
    return rating if unrated is None else rating.zip_with(~unrated, pl.repeat(float("nan"), len(rating), eager=True))


def _blank(column: pl.Series) -> pl.Series:
    """Cells with nothing in them, or NaN."""
    if column.dtype == pl.String:
        return column.str.strip_chars().str.to_lowercase().is_in(["", "nan"]).fill_null(True)
    return column.is_nan().fill_null(True) if column.dtype.is_float() else column.is_null()


def _propensities(table: Table, role: str) -> pl.Series:
    expected = "a probability above 0 and at most 1"
    number = _numbers(table, role, expected)
    table.refuse(role, (number <= 0) | (number > 1), "not a propensity", expected, _LEAVE.format(role))
    return number


def _places(table: Table, role: str) -> pl.Series:
    expected = "a whole number from 0"
    number = _numbers(table, role, expected)
    table.refuse(
        role, (number < 0) | (number >= 2**31) | (number % 1 != 0), f"not a {role}", expected, _LEAVE.format(role)
    )
    return number.cast(pl.Int32)


def _truths(table: Table, role: str) -> pl.Series:
    column = table.frame[role]
    if column.dtype == pl.String:
        plain = column.str.strip_chars().str.to_lowercase().str.replace(r"^([01])\.0*$", "$1")
        truth = plain.replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean)
        table.refuse(role, truth.is_null(), "not a yes or no", "0 or 1, true or false", _LEAVE.format(role))
        return truth
    number = _numbers(table, role, "0 or 1")
    table.refuse(role, (number != 0) & (number != 1), "not a yes or no", "0 or 1, true or false", _LEAVE.format(role))
    return number == 1


_KINDS: dict[str, Callable[[Table, str], pl.Series]] = {
    "rating": _ratings,
    "propensity": _propensities,
    "position": _places,
    "step": _places,
    "clicked": _truths,
    "exposed": _truths,
    "randomised": _truths,
}
