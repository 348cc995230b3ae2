"""Rows of fields between delimiters: read fast where all is well, and with care where something is not.

The fast way types numbers while reading. Where that fails, or leaves a gap, everything is read again as text, so that
an error can name the row and the value found.
"""

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import polars as pl

from unveil.data.readers import columns
from unveil.data.readers.columns import ReadOptions, assigned, known
from unveil.data.readers.content import Content
from unveil.data.readers.registry import Likeness, register
from unveil.data.readers.table import Table
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from _csv import Reader


_TEXT_ROLES = ("user", "item")
_SAMPLE = 100
_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")


@dataclass(frozen=True)
class Layout:
    """How the rows are laid out. Without a header, `names` are names to show."""

    separator: str
    names: tuple[str, ...]
    header: bool = True
    quote: str | None = '"'


def header_of(content: Content, separator: str) -> tuple[str, ...]:
    """The fields of the first line."""
    return tuple(next(csv.reader(content.head[:1], delimiter=separator), []))


def read_headed(content: Content, separator: str, chosen: Mapping[str, str]) -> Table:
    """A file with a header: its columns by the names chosen, or known."""
    names = header_of(content, separator)
    if len(names) < 2:
        raise UnveilError(
            "only one column found",
            where=content.path,
            found=content.head[0],
            expected=f"a header with {separator!r} between the names",
            hint="Check the delimiter, or name another --format.",
        )
    if not chosen:
        _refuse_headless(content, separator, names)
    return read_rows(content, Layout(separator, names), assigned(names, chosen, content.path))


def _refuse_headless(content: Content, separator: str, names: Sequence[str]) -> None:
    """Refuse a first line with a number in it and no name that is known: it is a row."""
    if any(map(_NUMBER.fullmatch, names)) and not any(map(known, names)):
        example = separator.join(("user_id", "item_id", "timestamp"))
        raise UnveilError(
            "the first line is a row, not a header",
            where=content.path,
            found=content.head[0],
            hint=f"Put a line with the names of the columns above it, such as {example}, or name another --format.",
        )


def read_rows(content: Content, layout: Layout, places: Mapping[str, int]) -> Table:
    """The columns at `places`, by role. Blank rows are passed over; too many or too few fields are an error."""
    frame = _fast(content, layout, places)
    if frame is None:
        frame = _careful(content, layout)
    chosen = frame.select(**{role: frame.columns[place] for role, place in places.items()})
    names = {role: layout.names[place] for role, place in places.items()}
    return Table(content.path, chosen, names, lambda row: _line(content, layout, row))


def _fast(content: Content, layout: Layout, places: Mapping[str, int]) -> pl.DataFrame | None:
    """The rows with numbers as numbers; None where that fails or leaves a gap, even in the last column."""
    try:
        frame = _without_blanks(_frame(content, layout, _guessed(content, layout, places)))
    except pl.exceptions.PolarsError:
        return None
    last = len(layout.names) - 1
    return None if any(frame[:, place].null_count() for place in {*places.values(), last}) else frame


def _careful(content: Content, layout: Layout) -> pl.DataFrame:
    """The rows as text. What cannot be read even so is explained."""
    content.check_encoding()
    _check_widths(content, layout)
    try:
        return _without_blanks(_frame(content, layout, [pl.String] * len(layout.names)))
    except pl.exceptions.PolarsError as error:
        raise UnveilError(
            "the rows cannot be told apart",
            where=content.path,
            found=str(error).splitlines()[0],
            hint="Look for a quote that is not closed, or name the format with --format.",
        ) from None


def _frame(content: Content, layout: Layout, types: Sequence[type[pl.DataType]]) -> pl.DataFrame:
    return pl.read_csv(
        content.body,
        has_header=False,
        skip_rows=content.lines_before_rows(header=layout.header),
        separator=layout.separator,
        quote_char=layout.quote,
        schema={str(place): kind for place, kind in enumerate(types)},
        glob=False,
    )


def _without_blanks(frame: pl.DataFrame) -> pl.DataFrame:
    if not frame[:, 0].null_count():
        return frame
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def _guessed(content: Content, layout: Layout, places: Mapping[str, int]) -> list[type[pl.DataType]]:
    """Ids and unused columns as text; the others as the first rows suggest."""
    sample = list(islice(_reader(content.head, layout), int(layout.header), _SAMPLE))
    types: list[type[pl.DataType]] = [pl.String] * len(layout.names)
    for role, place in places.items():
        if role not in _TEXT_ROLES:
            types[place] = _kind([record[place] for record in sample if len(record) > place])
    return types


def _kind(values: Sequence[str]) -> type[pl.DataType]:
    if all(re.fullmatch(r"-?[0-9]{1,19}", value) for value in values):
        return pl.Int64
    return pl.Float64 if all(re.fullmatch(r"-?[0-9]+\.?[0-9]*", value) for value in values) else pl.String


def _check_widths(content: Content, layout: Layout) -> None:
    width = len(layout.names)
    for line, record in _numbered(content, layout):
        if len(record) != width:
            raise UnveilError(
                f"a row of {len(record)} fields",
                where=f"{content.path}, row {line}",
                expected=f"{width}, as in the {'header' if layout.header else 'other rows'}",
                hint="Correct the row. A field that contains the delimiter must stand in quotes.",
            )


def _line(content: Content, layout: Layout, row: int) -> int:
    """The line of the file on which a row begins."""
    return next(islice(_numbered(content, layout), row, None), (row + 1, []))[0]


def _numbered(content: Content, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Each row below the header that is not blank, with the line it begins on."""
    with content.lines() as lines, _fields_of_any_length():
        reader = _reader((line.rstrip("\r\n").replace("\r", " ") for line in lines), layout)
        line, header = 1, layout.header
        try:
            for record in reader:
                if any(record) and not header:
                    yield line, record
                header = header and not any(record)
                line = reader.line_num + 1
        except csv.Error as error:
            raise UnveilError("unreadable row", where=f"{content.path}, row {line}", found=str(error)) from None


@contextmanager
def _fields_of_any_length() -> Iterator[None]:
    """Inside, the csv module reads ids that are longer than the 128 KiB it usually allows."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _reader(lines: Iterable[str], layout: Layout) -> "Reader":
    if layout.quote is None:
        return csv.reader(lines, delimiter=layout.separator, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=layout.separator, quotechar=layout.quote)


@dataclass(frozen=True)
class WithHeader:
    """A header line, then rows of as many fields."""

    name: str
    summary: str
    separator: str

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the names in the header; an unknown header goes to the delimiter that finds most columns."""
        names = header_of(content, self.separator)
        if columns.named(names, options.columns):
            return Likeness.NAMES
        widest = max(len(header_of(content, other.separator)) for other in _BY_DELIMITER)
        return Likeness.PERHAPS if len(names) == widest > 1 else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns by the names given, or known."""
        return read_headed(content, self.separator, options.columns)


@dataclass(frozen=True)
class Published:
    """A public data set in CSV, told by its very header."""

    name: str
    summary: str
    header: tuple[str, ...]

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by its very header."""
        return Likeness.CERTAIN if header_of(content, ",") == self.header else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """As any other CSV."""
        return read_headed(content, ",", options.columns)


_BY_DELIMITER = (
    WithHeader("csv", "comma-separated, with a header", ","),
    WithHeader("tsv", "tab-separated, with a header", "\t"),
    WithHeader("semicolon", "semicolon-separated, with a header", ";"),
    WithHeader("pipe", "separated by |, with a header", "|"),
)
register(
    *_BY_DELIMITER,
    Published("movielens", "MovieLens ratings.csv (20M, 25M, 32M)", ("userId", "movieId", "rating", "timestamp")),
    Published("amazon-2023", "Amazon reviews 2023, CSV (ms)", ("user_id", "parent_asin", "rating", "timestamp")),
)


_MARKS = {"user_id", "video_id", "time_ms", "is_click"}


class KuaiRand:
    """Every row is an exposure."""

    name = "kuairand"
    summary = "KuaiRand log_*.csv: exposures with clicks, ms"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the names in the header."""
        return Likeness.CERTAIN if set(header_of(content, ",")) >= _MARKS else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """As any other CSV, and each row marked as exposed."""
        table = read_headed(content, ",", options.columns)
        if "exposed" in table.names:
            return table
        exposed = table.frame.with_columns(exposed=pl.lit(True))
        return replace(table, frame=exposed, names={**table.names, "exposed": "exposed"})


register(KuaiRand())


_PRODUCT = re.compile(r"B[0-9A-Z]{9}|[0-9]{9}[0-9X]")
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class Amazon:
    """Two ids, rating, seconds on each line."""

    name: str
    summary: str
    roles: tuple[str, ...]

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the shape of the rows, and by which column has nothing but product codes."""
        rows = list(csv.reader(content.head))
        if not all(
            len(row) == 4 and _PLAIN_NUMBER.fullmatch(row[2]) and _PLAIN_NUMBER.fullmatch(row[3]) for row in rows
        ):
            return Likeness.NO
        products = [all(_PRODUCT.fullmatch(row[place]) for row in rows) for place in (0, 1)]
        if products[0] == products[1]:
            return Likeness.SHAPE
        return Likeness.CERTAIN if products[self.roles.index("item")] else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns by their place."""
        layout = Layout(",", self.roles, header=False)
        return read_rows(content, layout, assigned(self.roles, options.columns, content.path))


register(
    Amazon(
        "amazon-2014", "Amazon ratings 2014: user,item,rating,seconds, no header", ("user", "item", "rating", "time")
    ),
    Amazon(
        "amazon-2018", "Amazon ratings 2018: item,user,rating,seconds, no header", ("item", "user", "rating", "time")
    ),
)


_ROLES = ("user", "item", "rating", "time")


@dataclass(frozen=True)
class MovieLens:
    """User, item, rating and seconds on each line, between one or two delimiters."""

    name: str
    summary: str
    delimiter: str

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Told by the shape of the rows: a rating, then a whole number at the end."""
        between = re.escape(self.delimiter)
        row = re.compile(rf"[^\t]+?{between}[^\t]+?{between}-?\d+(\.\d+)?{between}-?\d+\r?")
        return Likeness.SHAPE if all(row.fullmatch(line) for line in content.head) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """A delimiter of two characters leaves an empty column between two columns."""
        step = len(self.delimiter)
        names = tuple(role if not gap else "" for role in _ROLES for gap in range(step))[: 3 * step + 1]
        layout = Layout(self.delimiter[0], names, header=False, quote=None)
        return read_rows(content, layout, assigned(names, options.columns, content.path))


register(
    MovieLens("movielens-100k", "MovieLens u.data: user, item, rating, seconds between tabs, no header", "\t"),
    MovieLens("movielens-1m", "MovieLens ratings.dat: user::item::rating::seconds, no header", "::"),
)


_FIELD = re.compile(r"(.+):(?:token|float|token_seq|float_seq)")


class Inter:
    """Columns are called by their field names; types are not needed."""

    name = "inter"
    summary = "RecBole .inter: a header of field:type, then fields between tabs"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Every field of the header has a type."""
        return Likeness.CERTAIN if all(map(_FIELD.fullmatch, _fields(content))) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns by the names given, or known."""
        names = tuple(_FIELD.sub(r"\1", field) for field in _fields(content))
        layout = Layout("\t", names, quote=None)
        return read_rows(content, layout, assigned(names, options.columns, content.path))


def _fields(content: Content) -> list[str]:
    return content.head[0].split("\t")


register(Inter())
