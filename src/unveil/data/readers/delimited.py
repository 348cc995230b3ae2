"""Rows of fields between delimiters, with or without a header: CSV, MovieLens, Amazon, KuaiRand, RecBole.

Numbers are typed while reading. Where that fails, or leaves a gap, all is read again as text, to name row and value.
"""

import csv
import re
import sys
from _csv import Reader
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import polars as pl

from unveil.data.readers.base import FORMATS, Format, Likeness, are_nearly_all
from unveil.data.readers.content import Content
from unveil.data.readers.table import ReadOptions, Table, assign_roles, is_alias, is_header
from unveil.errors import UnveilError

_NUMBER = re.compile(r"\s*-?\d+(\.\d+)?\s*")
#: Types of columns whose values all look so, best first.
_NUMBERS = {pl.Int64: re.compile(r"-?[0-9]{1,19}"), pl.Float64: re.compile(r"-?[0-9]+\.?[0-9]*")}


@dataclass(frozen=True)
class Layout:
    """How the rows are delimited. Without a header, `names` are names to show."""

    separator: str
    names: tuple[str, ...]
    header: bool = True
    quote: str | None = '"'

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Reader:
        if self.quote is None:
            return csv.reader(lines, delimiter=self.separator, quoting=csv.QUOTE_NONE)
        return csv.reader(lines, delimiter=self.separator, quotechar=self.quote, strict=strict)


class WithHeader(Format):
    """A header line, then rows of as many fields; columns by the names given, or known."""

    separator: ClassVar[str] = ","
    marks: ClassVar[tuple[str, ...]] = ()  # names that together no other format has

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """By the names in the header; an unknown header goes to the delimiter that finds most columns."""
        names = header_of(content, self.separator)
        if self.marks:
            return Likeness.CERTAIN if set(names) >= set(self.marks) else Likeness.NO
        if is_header(names, options.columns):
            return Likeness.NAMES
        widest = max(len(header_of(content, other)) for other in ",\t;|")
        return Likeness.PERHAPS if len(names) == widest > 1 else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        names = header_of(content, self.separator)
        where, found = content.path, content.head[0]
        if len(names) < 2:
            expected, hint = (
                f"a header with {self.separator!r} between the names",
                "Check the delimiter or the --format.",
            )
            raise UnveilError("only one column found", where=where, found=found, expected=expected, hint=hint)
        if not options.columns and any(map(_NUMBER.fullmatch, names)) and not any(map(is_alias, names)):
            example = self.separator.join(("user_id", "item_id", "timestamp"))
            hint = f"Put a line with the names of the columns above it, such as {example}, or name another --format."
            raise UnveilError("the first line is a row, not a header", where=where, found=found, hint=hint)
        return read_rows(content, Layout(self.separator, names), options)


def _with_header(name: str, about: str, separator: str = ",", marks: tuple[str, ...] = ()) -> None:
    parts = {"name": name, "separator": separator, "marks": marks, "__doc__": about, "__module__": __name__}
    FORMATS.register(type(f"WithHeader-{name}", (WithHeader,), parts))


_with_header("csv", "comma-separated, with a header")
_with_header("tsv", "tab-separated, with a header", "\t")
_with_header("semicolon", "semicolon-separated, with a header", ";")
_with_header("pipe", "separated by |, with a header", "|")
_with_header("movielens", "MovieLens ratings.csv (20M, 25M, 32M)", marks=("userId", "movieId", "rating", "timestamp"))
_with_header("amazon-2023", "Amazon reviews 2023, CSV (ms)", marks=("user_id", "parent_asin", "rating", "timestamp"))


@FORMATS.register
class KuaiRand(WithHeader):
    """KuaiRand log_*.csv: exposures with clicks, ms"""

    name, marks = "kuairand", ("user_id", "video_id", "time_ms", "is_click")

    def read(self, content: Content, options: ReadOptions) -> Table:
        table = super().read(content, options)
        if "exposed" not in table.names:
            exposed = table.frame.with_columns(exposed=pl.lit(True))
            table = replace(table, frame=exposed, names={**table.names, "exposed": "exposed"})
        return table


@FORMATS.register
class Inter(Format):
    """RecBole .inter: a header of field:type, then fields between tabs"""

    name = "inter"
    field = re.compile(r"(.+):(?:token|float|token_seq|float_seq)")

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        return Likeness.CERTAIN if all(map(self.field.fullmatch, content.head[0].split("\t"))) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Columns are called by their field names, types are not needed; nothing is ever in quotes."""
        names = tuple(self.field.sub(r"\1", field) for field in content.head[0].split("\t"))
        return read_rows(content, Layout("\t", names, quote=None), options)


@FORMATS.register
class Amazon2014(Format):
    """Amazon ratings 2014: user,item,rating,seconds, no header

    Only ids tell 2014 from 2018: products have ten characters (`B0…`, or an ISBN), reviewers more. Nothing is guessed.
    """

    name = "amazon-2014"
    roles: ClassVar[tuple[str, ...]] = ("user", "item", "rating", "time")
    product = re.compile(r"B[0-9A-Z]{9}|[0-9]{9}[0-9X]")
    row = "two ids, a rating and seconds between commas"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        if not (rows := list(csv.reader(self.rows(content)))):
            return Likeness.NO
        count = [sum(bool(self.product.fullmatch(row[place])) for row in rows) for place in (0, 1)]
        products = [are_nearly_all(each, len(rows)) for each in count]
        if products[0] == products[1]:
            return Likeness.SHAPE
        return Likeness.CERTAIN if products[self.roles.index("item")] else Likeness.NO

    def fits(self, line: str) -> bool:
        fields = next(csv.reader([line]))
        return len(fields) == 4 and all(map(re.compile(r"-?\d+(\.\d+)?").fullmatch, fields[2:]))

    def read(self, content: Content, options: ReadOptions) -> Table:
        return read_rows(content, Layout(",", self.roles, header=False), options)


@FORMATS.register
class Amazon2018(Amazon2014):
    """Amazon ratings 2018: item,user,rating,seconds, no header"""

    name = "amazon-2018"
    roles = ("item", "user", "rating", "time")


@FORMATS.register
class MovieLens100K(Format):
    """MovieLens u.data: user, item, rating, seconds between tabs, no header"""

    name = "movielens-100k"
    delimiter, row = "\t", "user, item, rating and seconds between tabs"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        return Likeness.SHAPE if self.rows(content) else Likeness.NO

    def fits(self, line: str) -> bool:
        between, other = self.delimiter, rf"[^\t{self.delimiter[0]}]+"
        return bool(re.fullmatch(rf"{other}{between}{other}{between}-?\d+(\.\d+)?{between}-?\d+", line.rstrip("\r")))

    def read(self, content: Content, options: ReadOptions) -> Table:
        """A delimiter of two characters leaves an empty column between two columns."""
        step, roles = len(self.delimiter), ("user", "item", "rating", "time")
        names = tuple(role if not gap else "" for role in roles for gap in range(step))[: 3 * step + 1]
        return read_rows(content, Layout(self.delimiter[0], names, header=False, quote=None), options)


@FORMATS.register
class MovieLens1M(MovieLens100K):
    """MovieLens ratings.dat: user::item::rating::seconds, no header"""

    name, delimiter, row = "movielens-1m", "::", "user::item::rating::seconds"


def header_of(content: Content, separator: str) -> tuple[str, ...]:
    """The fields of the first line."""
    return tuple(next(csv.reader(content.head[:1], delimiter=separator), []))


def read_rows(content: Content, layout: Layout, options: ReadOptions) -> Table:
    """The columns by role. Blank rows are passed over; too many or too few fields are an error."""
    names = assign_roles(layout.names, options.columns, content.path)
    places = {role: layout.names.index(name) for role, name in names.items()}
    frame = _fast(content, layout, places)
    frame = _careful(content, layout) if frame is None else frame
    return Table(
        content.path,
        frame.select(**{role: str(place) for role, place in places.items()}),
        names,
        line=lambda row: next(islice(_numbered(content, layout), row, None), (row + 1, []))[0],
    )


def _fast(content: Content, layout: Layout, places: Mapping[str, int]) -> pl.DataFrame | None:
    """The rows with numbers as numbers; None where that fails or leaves a gap, even in the last column."""
    sample = list(islice(layout.reader(content.head), int(layout.header), 100))
    types: list[type[pl.DataType]] = [pl.String] * len(layout.names)
    for place in (place for role, place in places.items() if role not in ("user", "item")):
        values = [record[place] for record in sample if len(record) > place]
        fitting = (kind for kind, pattern in _NUMBERS.items() if all(map(pattern.fullmatch, values)))
        types[place] = next(fitting, pl.String)
    try:
        if layout.quote is not None and _has_odd_quotes(content, layout.separator):
            return None
        frame = _frame(content, layout, types)
    except pl.exceptions.PolarsError:
        return None
    gap = any(frame[:, place].null_count() for place in (*places.values(), -1))
    filled = any(frame[:, place].null_count() < len(frame) for place in _between(layout))
    return None if gap or filled else frame


def _has_odd_quotes(content: Content, separator: str) -> bool:
    """Whether a quote is open at the end of a line, or closed within a field: rows might run into one another."""
    if not content.has_quotes():
        return False
    field = rf'(?:"(?:[^"]|"")*"|[^"{separator}][^{separator}]*|)'
    odd = ~pl.col("line").str.strip_suffix("\r").str.contains(f"^{field}(?:[{separator}]{field})*$")
    return bool(content.as_lines().select(odd.any()).item())


def _between(layout: Layout) -> list[int]:
    """The empty columns that a delimiter of two characters leaves."""
    return [] if layout.header else [place for place, name in enumerate(layout.names) if not name]


def _careful(content: Content, layout: Layout) -> pl.DataFrame:
    content.check_encoding()
    width = len(layout.names)
    for line, record in _numbered(content, layout):
        if len(record) != width or any(record[place] for place in _between(layout)):
            expected = f"{width}, as in the {'header' if layout.header else 'other rows'}"
            hint = "Correct the row. A field that contains the delimiter must stand in quotes."
            where = f"{content.path}, row {line}"
            raise UnveilError(f"a row of {len(record)} fields", where=where, expected=expected, hint=hint)
    try:
        return _frame(content, layout, [pl.String] * width)
    except pl.exceptions.PolarsError as error:
        found = str(error).splitlines()[0]
        hint = "Look for a quote that is not closed, or name the format with --format."
        raise UnveilError("the ends of the rows are not clear", where=content.path, found=found, hint=hint) from None


def _frame(content: Content, layout: Layout, types: Sequence[type[pl.DataType]]) -> pl.DataFrame:
    frame = pl.read_csv(
        content.body,
        has_header=False,
        skip_rows=content.lines_before_rows(header=layout.header),
        separator=layout.separator,
        quote_char=layout.quote,
        schema={str(place): kind for place, kind in enumerate(types)},
        glob=False,
    )
    return frame.filter(~pl.all_horizontal(pl.all().is_null())) if frame[:, 0].null_count() else frame


def _numbered(content: Content, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Each row below the header that is not blank, with the line it begins on."""
    with content.lines() as lines, ExitStack() as after:
        after.callback(csv.field_size_limit, csv.field_size_limit(sys.maxsize))  # an id may be longer than 128 KiB
        reader = layout.reader((line.rstrip("\r\n").replace("\r", " ") for line in lines), strict=True)
        line, header = 1, layout.header
        try:
            for record in reader:
                if any(record) and not header:
                    yield line, record
                header = header and not any(record)
                line = reader.line_num + 1
        except csv.Error as error:
            raise UnveilError("unreadable row", where=f"{content.path}, row {line}", found=str(error)) from None
