"""What a format gives, columns by role as the file has them, and their values as the typed columns of a log."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import polars as pl

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import OPTIONAL
from unveil.errors import UnveilError

#: µs in one unit; `iso` is ISO 8601 text, `order` an integer that only orders and is kept as it is.
UNITS = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001, "iso": None, "order": None}
#: A column whose largest magnitude is below is in the unit; above all of them, in ns.
_LIMITS = {"s": 1e11, "ms": 1e14, "us": 1e17}
_LIMIT = 2.0**63
MOST_STEPS = 1_000_000  # Tables by step have a row for each, whether anything happened there or not
_TIME = "seconds, ms, µs or ns since 1970, or ISO 8601"
#: ISO 8601, extended or basic: date, then if present clock, fraction, zone.
_ISO = (
    r"^\s*(?<date>\d{4}-\d{2}-\d{2}|\d{8})"
    r"(?:[T ](?<hour>[01]\d|2[0-3]):?(?<minute>[0-5]\d)(?::?(?<second>[0-5]\d|60)(?:[.,](?<fraction>\d+))?)?"
    r" ?(?:Z|z|(?<zone>[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?))?)?\s*$"
)
_TRUTH = {"1": True, "true": True, "t": True, "yes": True, "0": False, "false": False, "f": False, "no": False}
_HINTS = dict.fromkeys(("user", "item"), "Correct the row, or take it out.") | {
    "step": "Number the steps 0, 1, 2, …; or read them as times: --time-col NAME --time-unit order --step-col none.",
    "time": "Correct the row, say how to read the column with --time-unit, or name another with --time-col.",
}


@dataclass(frozen=True)
class Table:
    """One source, not yet typed. `names` gives the file's own name of each role's column."""

    source: object
    frame: pl.DataFrame
    names: Mapping[str, str]
    line: Callable[[int], int] = (1).__add__  # frame row → the line an editor shows; or the row, counted from 1

    def check(self, role: str, bad: pl.Series, problem: str, expected: str) -> None:
        """Raise an error about the first row that is bad, if there is one."""
        row = bad.arg_max() if bad.any() else None
        if row is not None:
            value = self.frame[role][row]
            empty = value is None or value == ""
            problem, found = (f"{problem}, the cell is empty", None) if empty else (problem, value)
            where = f"{self.source}, row {self.line(row)}, column {self.names[role]}"
            hint = _HINTS.get(role, f"Correct the row, or leave the column out with --{role}-col none.")
            raise UnveilError(problem, where=where, found=found, expected=expected, hint=hint)

    def wrong_column(self, role: str, problem: str, expected: str) -> UnveilError:
        where, hint = f"{self.source}, column {self.names[role]}", f"Name another with --{role}-col."
        return UnveilError(problem, where=where, found=str(self.frame[role].dtype), expected=expected, hint=hint)


def optional(table: Table, time_unit: str | None) -> list[pl.Series]:
    """All columns but the ids."""
    readers = _READERS | {"time": lambda table, _: times(table, time_unit)}
    return [readers[role](table, role).alias(role) for role in table.frame.columns if role in readers]


def ids(table: Table, role: str) -> pl.Series:
    """Ids as strings, exactly as written; whole numbers in their decimal form."""
    column = table.frame[role]
    check_missing_ids(table, role)
    if column.dtype.is_float() or column.dtype.is_decimal():
        number = column.cast(pl.Float64)
        odd = ~number.is_finite() | (number % 1 != 0) | (number.abs() >= 2**53)
        table.check(role, odd, "not an id", "text or a whole number")
        column = number.cast(pl.Int64)
    elif not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise table.wrong_column(role, "not an id column", "text or whole numbers")
    return column.cast(pl.String).alias(role)


def check_missing_ids(table: Table, role: str) -> None:
    """Cells with nothing in them."""
    table.check(role, table.frame[role].is_null(), f"no {role}", "an id")


def check_blank_ids(table: Table, role: str, vocabulary: Vocabulary | None = None) -> None:
    """Ids of no characters. They come first in a vocabulary, so that the column need not be searched where it is."""
    if vocabulary is None or vocabulary[0] == "":
        table.check(role, table.frame[role].cast(pl.String) == "", f"no {role}", "an id")


def _numbers(table: Table, role: str, expected: str = "a number", *, but: pl.Series | None = None) -> pl.Series:
    """A finite number in every row `but` those, which get a 0."""
    column = table.frame[role]
    text = column.dtype == pl.String
    if not (text or column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise table.wrong_column(role, "not a column of numbers", expected)
    number = (column.str.strip_chars() if text else column).cast(pl.Float64, strict=False)
    if but is not None:
        number = number.zip_with(~but, pl.zeros(len(number), eager=True))
    table.check(role, number.is_null(), "not a number", expected)
    table.check(role, ~number.is_finite(), "not a finite number", expected)
    return number


def _ratings(table: Table, role: str) -> pl.Series:
    """A rating of every event; an impression without a click may have none, which is NaN."""
    unrated = None if "clicked" not in table.frame.columns else ~_truths(table, "clicked") & _blank(table.frame[role])
    rating = _numbers(table, role, but=unrated).cast(pl.Float32)
    table.check(role, ~rating.is_finite(), "too large a rating", "a number")
    return rating if unrated is None else rating.zip_with(~unrated, pl.repeat(float("nan"), len(rating), eager=True))


def _blank(column: pl.Series) -> pl.Series:
    if column.dtype == pl.String:
        return column.str.strip_chars().str.to_lowercase().is_in(["", "nan"]).fill_null(True)
    return column.is_nan().fill_null(True) if column.dtype.is_float() else column.is_null()


def _propensities(table: Table, role: str) -> pl.Series:
    number = _numbers(table, role, expected := "a probability above 0 and at most 1")
    table.check(role, (number <= 0) | (number > 1), "not a propensity", expected)
    return number


def _counts(table: Table, role: str) -> pl.Series:
    most = MOST_STEPS if role == "step" else 2**31
    number = _numbers(table, role, expected := f"a whole number from 0, below {most:,}")
    table.check(role, (number < 0) | (number >= most) | (number % 1 != 0), f"not a {role}", expected)
    return number.cast(pl.Int32)


def _truths(table: Table, role: str) -> pl.Series:
    column, problem, expected = table.frame[role], "not a yes or no", "0 or 1, true or false"
    if column.dtype == pl.String:
        plain = column.str.strip_chars().str.to_lowercase().str.replace(r"^([01])\.0*$", "$1")
        truth = plain.replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean)
        table.check(role, truth.is_null(), problem, expected)
        return truth
    number = _numbers(table, role, "0 or 1")
    table.check(role, (number != 0) & (number != 1), problem, expected)
    return number == 1


_READERS: dict[str, Callable[[Table, str], pl.Series]] = {
    "rating": _ratings,
    "propensity": _propensities,
    **dict.fromkeys(("position", "step"), _counts),
    **dict.fromkeys(("clicked", "exposed", "randomised"), _truths),
}


def times(table: Table, unit: str | None) -> pl.Series:
    """The time column in µs since 1970-01-01 UTC, whatever form the file has it in.

    Numbers are in `unit` or, by the largest magnitude in the column: below 10¹¹ seconds (to the year 5138), below 10¹⁴
    ms, below 10¹⁷ µs, else ns. Columns of eight-digit dates (20220425) are dates. Text is ISO 8601, by default UTC.
    """
    column = table.frame["time"]
    if column.dtype in (pl.Date, pl.Datetime):
        table.check("time", column.is_null(), "no time", _TIME)
        return column.cast(pl.Datetime("us")).to_physical()
    if column.dtype == pl.String:
        return _of_text(table, column, unit)
    if not column.dtype.is_numeric():
        raise table.wrong_column("time", "not a time column", _TIME)
    if unit == "iso" or (unit is None and are_dates(column)):
        return _of_text(table, column.cast(pl.Int64, strict=False).cast(pl.String), "iso")
    return _of_numbers(table, column, unit)


def _of_text(table: Table, text: pl.Series, unit: str | None) -> pl.Series:
    """Numbers or ISO 8601, whichever more of the column is; the first value that is not, is named."""
    number = number_of(text)
    if unit == "iso" or (unit is None and (number.null_count() or are_dates(number))):
        moment = of_iso(text)
        if unit == "iso" or moment.null_count() <= number.null_count():
            table.check("time", moment.is_null(), "not a time", _expected(unit))
            return moment
    table.check("time", number.is_null(), "not a time", _expected(unit))
    return _of_numbers(table, number, unit)


def _of_numbers(table: Table, column: pl.Series, unit: str | None) -> pl.Series:
    table.check("time", column.is_null(), "no time", _expected(unit))
    whole = column.cast(pl.Int64, strict=False) if column.dtype.is_integer() else None
    column = column.cast(pl.Float64) if whole is None or whole.null_count() else whole
    if column.dtype.is_float():
        table.check("time", ~column.is_finite(), "not a time", _expected(unit))
    if unit == "order":
        odd = (column.cast(pl.Float64).abs() >= _LIMIT) | (column % 1 != 0)
        table.check("time", odd, "not an order", _expected(unit))
        return column.cast(pl.Int64)
    largest = largest_of(column)
    if unit is None:
        check_one_unit(table, column, largest)
    scale = UNITS[unit or unit_of(largest)]
    assert scale is not None
    if largest * scale >= _LIMIT:
        too_large = (column.cast(pl.Float64) * scale).abs() >= _LIMIT
        table.check("time", too_large, "too large a time", _expected(unit))
    if not column.dtype.is_integer():
        return (column * scale).round().cast(pl.Int64)
    return column * int(scale) if scale >= 1 else column // 1_000


def _expected(unit: str | None) -> str:
    known = {None: _TIME, "iso": "ISO 8601, e.g. 2024-05-01T12:30:00Z", "order": "a whole number"}
    return known.get(unit, f"a number ({unit} since 1970)")


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


def unit_of(largest: float) -> str:
    """The unit of a column whose largest magnitude this is."""
    return next((unit for unit, limit in _LIMITS.items() if largest < limit), "ns")


def check_one_unit(table: Table, column: pl.Series, largest: float) -> None:
    """A number that, alone, would be read in another unit: a column has one."""
    least = max((limit for limit in _LIMITS.values() if limit <= largest), default=0.0)
    if least and bool((column.abs() < least).any()):
        problem = f"a time too small for {unit_of(largest)}, the unit that the largest one in the column suggests"
        table.check("time", column.abs() < least, problem, "one unit in the whole column")


def largest_of(column: pl.Series) -> float:
    """The largest magnitude in a column; 0 where there is none."""
    return max(abs(float(column.min() or 0)), abs(float(column.max() or 0)))  # type: ignore[arg-type]


def of_iso(text: pl.Series) -> pl.Series:
    """ISO 8601 in µs; null where it is not."""
    part = text.str.extract_groups(_ISO).struct
    hour, minute, second = (
        part.field(name).cast(pl.Int64, strict=False).fill_null(0) for name in ("hour", "minute", "second")
    )
    fraction = part.field("fraction").fill_null("").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64)
    zone = part.field("zone").fill_null("+0000").str.replace(":", "", literal=True).str.pad_end(5, "0")
    east = zone.str.slice(1, 2).cast(pl.Int64) * 3600 + zone.str.slice(3, 2).cast(pl.Int64) * 60
    east *= zone.str.starts_with("-").replace_strict({True: -1, False: 1}, return_dtype=pl.Int64)
    day = part.field("date").str.replace_all("-", "", literal=True).str.to_date("%Y%m%d", strict=False)
    seconds = hour * 3600 + minute * 60 + second - east
    return day.cast(pl.Datetime("us")).to_physical() + seconds * 1_000_000 + fraction


ROLES = ("user", "item", *OPTIONAL)

NONE = "none"  # Chosen for a role that the file's column of that name does not play

#: Names by role, best first; those between two | are equally good. Compared without case, `_`, `-` and spaces.
_NAMES = {
    "user": "userid | user | uid reviewerid visitorid customerid memberid profileid | sid sessionid session",
    "item": "itemid | item | movieid parentasin videoid productid iid trackid songid bookid articleid newsid sku"
    "| asin isbn",
    "time": "timestamp | time | ts timems unixreviewtime unixtime eventtime eventtimestamp createdat | datetime | date",
    "rating": "rating | overall stars score | weight",
    "clicked": "clicked | click isclick | label",
    "exposed": "exposed | isexposed",
    "propensity": "propensity | pscore propensityscore",
    "position": "position | rank",
    "randomised": "isrand | randomised randomized israndom",
    "step": "step | timestep",
}
ALIASES = {role: [rank.split() for rank in names.split("|")] for role, names in _NAMES.items()}


@dataclass(frozen=True)
class ReadOptions:
    """Everything a person may say about a file; what is left out is found by content."""

    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # role → the file's own column
    time_unit: str | None = None
    encoding: str = "utf-8"
    query: str | None = None

    def __post_init__(self) -> None:
        if self.time_unit is not None and self.time_unit not in UNITS:
            raise UnveilError("unknown time unit", found=self.time_unit, expected=f"one of {', '.join(UNITS)}")
        for role in self.columns:
            if role not in ROLES:
                raise UnveilError("no such column role", found=role, expected=f"one of {', '.join(ROLES)}")


def assign_roles(names: Sequence[str], chosen: Mapping[str, str], where: object) -> dict[str, str]:
    """The name of each role's column: as `chosen`, else by alias. What is not clear is an error."""
    unwanted = {role for role, name in chosen.items() if name == NONE and NONE not in names} - {"user", "item"}
    found: dict[str, str] = {}
    for role in (role for role in chosen if role not in unwanted):
        name = _chosen(names, role, chosen[role], where)
        if name in found.values():
            other = next(other for other in found if found[other] == name)
            raise UnveilError(f"one column cannot be both --{other}-col and --{role}-col", where=where, found=name)
        found[role] = name
    free = [name for name in names if name not in found.values()]
    for role in ROLES:
        if role not in found and role not in unwanted and (alias := _by_alias(free, role, where)) is not None:
            found[role] = alias
    for role in ("user", "item"):
        if role not in found:
            strange = [name for name in names if not is_alias(name)]
            near = _near(canonical(role), strange, f"Perhaps --{role}-col {{!r}}? ", cutoff=0.5)
            expected = f"{canonical(role)!r} or another name that is known"
            hint = f"{near}Name it with --{role}-col, or the file's format with --format."
            raise UnveilError(f"no {role} column among {_listed(names)}", where=where, expected=expected, hint=hint)
    return {role: found[role] for role in ROLES if role in found}


def is_header(names: Sequence[str], chosen: Mapping[str, str]) -> bool:
    """Whether both a user and an item column are among these names."""
    spelt = {plain(name) for name in names}
    return all(
        chosen[role] in names if role in chosen else any(not spelt.isdisjoint(rank) for rank in ALIASES[role])
        for role in ("user", "item")
    )


def canonical(role: str) -> str:
    """The name under which a role is written to files, and the first choice wherever a file has it."""
    return {"user": "user_id", "item": "item_id", "time": "timestamp", "randomised": "is_rand"}.get(role, role)


def is_alias(name: str) -> bool:
    """Whether this is a usual name of some role's column."""
    return any(plain(name) in rank for ranks in ALIASES.values() for rank in ranks)


def item_column(names: Sequence[str]) -> int | None:
    """The place of the ids in a table of items: a name that the log's item column may have, or `id`."""
    first, bare, *others = ALIASES["item"]
    spelt = [plain(name) for name in names]
    ranks = (first, *others[:-1], ["id"], others[-1], bare)
    return next((place for rank in ranks for place, name in enumerate(spelt) if name in rank), None)


def plain(name: str) -> str:
    """The name as names are compared: without case, blanks, _ and -."""
    return re.sub(r"[\s_-]", "", name.casefold())


def _chosen(names: Sequence[str], role: str, name: str, where: object) -> str:
    found = [other for other in names if other == name] or [other for other in names if other.strip() == name.strip()]
    if not found:
        hint = f"{_near(name, names, 'Did you mean {!r}? ')}Name the column with --{role}-col."
        raise UnveilError("no such column", where=where, found=name, expected=f"one of {_listed(names)}", hint=hint)
    _check_different([name] * len(found), where)
    return found[0]


def _by_alias(names: Sequence[str], role: str, where: object) -> str | None:
    if names.count(canonical(role)) == 1:
        return canonical(role)
    for rank in ALIASES[role]:
        found = [name for name in names if plain(name) in rank]
        if len(found) > 1:
            _check_different(found, where)
            problem = f"several columns could be the {role}: {_listed(found)}"
            raise UnveilError(problem, where=where, hint=f"Say which with --{role}-col.")
        if found:
            return found[0]
        _check_spelling(names, rank, role, where)
    return None


def _check_spelling(names: Sequence[str], rank: Sequence[str], role: str, where: object) -> None:
    """A column that is called nearly as one of a role is not left out: the header may be damaged."""
    known = [name for name in rank if len(name) > 5]
    for name in (name for name in names if not is_alias(name)):
        if close := get_close_matches(plain(name), known, n=1, cutoff=0.8):
            hint = f"Correct the header, or say --{role}-col {shlex.quote(name)} or --{role}-col {NONE}."
            raise UnveilError(f"a column spelt nearly as {close[0]!r}", where=where, found=name, hint=hint)


def _check_different(names: Sequence[str], where: object) -> None:
    if len(names) > 1 and len(set(names)) == 1:
        hint = "Rename all but one of them."
        raise UnveilError("several columns have the same name", where=where, found=names[0], hint=hint)


def _near(name: str, names: Sequence[str], question: str, cutoff: float = 0.6) -> str:
    return "".join(map(question.format, get_close_matches(name, names, n=1, cutoff=cutoff)))


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown}, … ({len(names)} columns)" if len(names) > most else shown
