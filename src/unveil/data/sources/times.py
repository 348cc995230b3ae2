"""Times in whatever form a file has them → µs since 1970-01-01 UTC."""

import polars as pl

from unveil.data.sources.table import Table
from unveil.errors import UnveilError

#: µs in one unit; `iso` is ISO 8601 text, `order` an integer that only orders and is kept as it is.
UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001, "iso": None, "order": None}

_EXPECTED = "seconds, ms, µs or ns since 1970, or ISO 8601"
_HINT = "Correct the row, say how to read the column with --time-unit, or name another with --time-col."
#: ISO 8601, extended or basic: date, then if present clock, fraction, zone.
_ISO = (
    r"^\s*(?<date>\d{4}-\d{2}-\d{2}|\d{8})"
    r"(?:[T ](?<hour>[01]\d|2[0-3]):?(?<minute>[0-5]\d)(?::?(?<second>[0-5]\d|60)(?:[.,](?<fraction>\d+))?)?"
    r" ?(?:Z|z|(?<zone>[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?))?)?\s*$"
)
_LIMIT = 2.0**63
#: Below these, numbers are judged to be in the unit.
_LIMITS = {"s": 1e11, "ms": 1e14, "us": 1e17}


def times(table: Table, unit: str | None) -> pl.Series:
    """The time column in µs.

    Numbers are read in `unit`; where it is not given, by the largest magnitude in the column: below 10¹¹ they are
    seconds (to the year 5138), below 10¹⁴ ms, below 10¹⁷ µs, else ns. Whole columns of eight-digit calendar dates
    (20220425) are dates. Text is ISO 8601; without a zone it is UTC.
    """
    column = table.frame["time"]
    if column.dtype.is_temporal():
        return _of_moments(table, column)
    if column.dtype == pl.String:
        return _of_text(table, column, unit)
    if not column.dtype.is_numeric():
        raise UnveilError("not a time column", where=table.where("time"), found=str(column.dtype), expected=_EXPECTED)
    if unit == "iso" or (unit is None and are_dates(column)):
        return _of_text(table, column.cast(pl.Int64, strict=False).cast(pl.String), "iso")
    return _of_numbers(table, column, unit)


def _of_moments(table: Table, column: pl.Series) -> pl.Series:
    if column.dtype not in (pl.Date, pl.Datetime):
        raise UnveilError("not a time column", where=table.where("time"), found=str(column.dtype), expected=_EXPECTED)
    table.refuse("time", column.is_null(), "no time", _EXPECTED, _HINT)
    return column.cast(pl.Datetime("us")).to_physical()


def _of_text(table: Table, text: pl.Series, unit: str | None) -> pl.Series:
    """Numbers or ISO 8601, whichever more of the column is; the first value that is not, is named."""
    number = number_of(text)
    if unit in (None, "iso") and (unit == "iso" or number.null_count() or are_dates(number)):
        moment = of_iso(text)
        if unit == "iso" or moment.null_count() <= number.null_count():
            table.refuse("time", moment.is_null(), "not a time", _expected(unit), _HINT)
            return moment
    table.refuse("time", number.is_null(), "not a time", _expected(unit), _HINT)
    return _of_numbers(table, number, unit)


def _expected(unit: str | None) -> str:
    named = {None: _EXPECTED, "iso": "ISO 8601, e.g. 2024-05-01T12:30:00Z", "order": "a whole number"}
    return named.get(unit, f"a number ({unit} since 1970)")


def number_of(text: pl.Series) -> pl.Series:
    """Text as numbers: whole where all are, else with fractions; null where it is no number."""
    stripped = text.str.strip_chars()
    whole = stripped.cast(pl.Int64, strict=False)
    return stripped.cast(pl.Float64, strict=False) if whole.null_count() else whole


def are_dates(column: pl.Series) -> bool:
    """Whether every value is a calendar date in eight digits, such as 20220425."""
    low, high = column.min(), column.max()
    if not isinstance(low, int) or not isinstance(high, int) or low < 19000101 or high > 21001231:
        return False
    return column.cast(pl.String).str.to_date("%Y%m%d", strict=False).null_count() == 0


def _of_numbers(table: Table, column: pl.Series, unit: str | None) -> pl.Series:
    if column.null_count():
        table.refuse("time", column.is_null(), "no time", _expected(unit), _HINT)
    column = _in_64_bits(column)
    if column.dtype.is_float():
        table.refuse("time", ~column.is_finite(), "not a time", _expected(unit), _HINT)
    if unit == "order":
        table.refuse("time", _out_of_reach(column, 1.0) | (column % 1 != 0), "not an order", _expected(unit), _HINT)
        return column.cast(pl.Int64)
    if unit is None:
        refuse_mixed(table, column, largest_of(column))
    scale = UNITS[unit or judged(largest_of(column))]
    assert scale is not None
    if largest_of(column) * scale >= _LIMIT:
        table.refuse("time", _out_of_reach(column, scale), "too large a time", _expected(unit), _HINT)
    if not column.dtype.is_integer():
        return (column * scale).round().cast(pl.Int64)
    return column * int(scale) if scale >= 1 else column // 1_000


def _in_64_bits(column: pl.Series) -> pl.Series:
    """Whole numbers as Int64 where they fit; all else as Float64."""
    whole = column.cast(pl.Int64, strict=False) if column.dtype.is_integer() else None
    return column.cast(pl.Float64) if whole is None or whole.null_count() else whole


def judged(largest: float) -> str:
    """The unit of a column whose largest magnitude this is."""
    return next((unit for unit, limit in _LIMITS.items() if largest < limit), "ns")


def refuse_mixed(table: Table, column: pl.Series, largest: float) -> None:
    """Refuse a number that, alone, would be judged to be in another unit: a column has one."""
    least = max((limit for limit in _LIMITS.values() if limit <= largest), default=0.0)
    if least and bool((column.abs() < least).any()):
        problem = f"a time too small for {judged(largest)}, the unit that the largest one in the column suggests"
        table.refuse("time", column.abs() < least, problem, "one unit in the whole column", _HINT)


def largest_of(column: pl.Series) -> float:
    """The largest magnitude in a column; 0 where there is none."""
    return max(abs(float(column.min() or 0)), abs(float(column.max() or 0)))  # type: ignore[arg-type]


def _out_of_reach(column: pl.Series, scale: float) -> pl.Series:
    return (column.cast(pl.Float64) * scale).abs() >= _LIMIT


def of_iso(text: pl.Series) -> pl.Series:
    """ISO 8601 in µs; null where it is not."""
    part = text.str.extract_groups(_ISO).struct
    whole = {name: part.field(name).cast(pl.Int64, strict=False).fill_null(0) for name in ("hour", "minute", "second")}
    seconds = whole["hour"] * 3600 + whole["minute"] * 60 + whole["second"]
    fraction = part.field("fraction").fill_null("").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64)
    day = part.field("date").str.replace_all("-", "", literal=True).str.to_date("%Y%m%d", strict=False)
    return day.cast(pl.Datetime("us")).to_physical() + (seconds - _zone(part.field("zone"))) * 1_000_000 + fraction


def _zone(zone: pl.Series) -> pl.Series:
    digits = zone.fill_null("+0000").str.replace(":", "", literal=True).str.pad_end(5, "0")
    minutes = digits.str.slice(1, 2).cast(pl.Int64) * 60 + digits.str.slice(3, 2).cast(pl.Int64)
    return minutes * 60 * digits.str.starts_with("-").replace_strict({True: -1, False: 1}, return_dtype=pl.Int64)
