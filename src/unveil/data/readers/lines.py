"""Formats without delimited columns: pairs and sequences of ids on lines, JSON lines, Parquet."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar

import polars as pl

from unveil.data.readers.base import FORMATS, Format, Likeness
from unveil.data.readers.content import Content
from unveil.data.readers.table import ReadOptions, Table, assign_roles, is_header
from unveil.errors import UnveilError

_DIGIT = re.compile(r"\d")


class Words(Format):
    """Lines of words between blanks, the first of them a user, the others items."""

    items: ClassVar[str]  # which of the words, to show
    odd: ClassVar[pl.Expr]  # what number of words is an error, and what is said of it
    problem: ClassVar[str]
    expected: ClassVar[str]

    def read(self, content: Content, options: ReadOptions) -> Table:
        lines = read_words(content, options)
        odd = lines.filter(self.odd)
        if len(odd):
            where, found = f"{content.path}, row {odd['row'][0] + 1}", " ".join(odd["words"][0])
            hint = "Correct the line, or name another --format."
            raise UnveilError(self.problem, where=where, found=found, expected=self.expected, hint=hint)
        split = lines.select("row", user=pl.col("words").list.first(), item=pl.col("words").list.slice(1))
        events, names = split.explode("item"), {"user": "1", "item": self.items}
        return Table(content.path, events.drop("row"), names, lambda row: int(events["row"][row]) + 1)


@FORMATS.register
class Pairs(Words):
    """`user item` on each line, in order, no header (SASRec, BERT4Rec)"""

    name, items, problem, expected = "pairs", "2", "not a pair", "a user and an item"
    odd = pl.col("words").list.len() != 2

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Two words on every line, of which the first names no columns and has no delimiters of another format."""
        first, *others = content.head
        unlike = not _DIGIT.search(first) and bool(others) and all(map(_DIGIT.search, others))
        header = unlike or bool(set(first) & set(',;|"')) or is_header(_words(first), options.columns)
        two = all(len(_words(line)) == 2 for line in content.head)
        return Likeness.SHAPE if two and not header else Likeness.NO


@FORMATS.register
class SequenceLines(Words):
    """one user's whole sequence on each line: user item item …, no header (S3Rec)"""

    name, items = "sequences", "2 and on"
    problem, expected = "a user without items", "a user and at least one item"
    odd = pl.col("words").list.len() < 2

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Whole numbers on lines of unequal length; other words, and tables of equal lines, have to be named."""
        lengths = {len(_words(line)) for line in content.head}
        numbers = all(re.fullmatch(r"[\d \t]+", line) for line in content.head)
        return Likeness.SHAPE if numbers and len(lengths) > 1 and min(lengths) > 1 else Likeness.NO


@FORMATS.register
class RatingMatrix(Format):
    """a matrix of ratings: a line a user, a column an item, both counted from 0; 0: not rated (Coat)"""

    name = "matrix"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Many columns of whole numbers, most of them 0: a row of another length is an error of `read`."""
        rows = [_words(line) for line in content.head]
        sparse = len(rows) > 1 and len(rows[0]) > 9 and 2 * sum(row.count("0") for row in rows) > sum(map(len, rows))
        return Likeness.NAMES if sparse and re.fullmatch(r"[\d \t]+", "".join(content.head)) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        lines = read_words(content, options)
        wide = pl.col("words").list.len()
        if len(odd := lines.filter(wide != wide.first())):
            where, expected = f"{content.path}, row {odd['row'][0] + 1}", f"{len(lines['words'][0])} ratings"
            raise UnveilError("rows of unequal length", where=where, found=len(odd["words"][0]), expected=expected)
        cells = lines.select("row", user=pl.int_range(pl.len()), item=pl.int_ranges(wide), rating="words")
        rated = cells.explode("item", "rating").filter(pl.col("rating") != "0")
        names = {"user": "of the row", "item": "of the place", "rating": "of the ratings"}
        return Table(content.path, rated.drop("row"), names, lambda row: int(rated["row"][row]) + 1)


def read_words(content: Content, options: ReadOptions) -> pl.DataFrame:
    """`row` (the line, from 0) and `words` (between spaces or tabs) of each line that is not blank."""
    if options.columns:
        hint = f"Leave --{next(iter(options.columns))}-col out, or name another --format."
        raise UnveilError("this format has no named columns", where=content.path, hint=hint)
    try:
        lines = pl.read_csv(
            content.body,
            has_header=False,
            separator="\x01",  # no character of text
            quote_char=None,
            schema={"line": pl.String},
            glob=False,
        )
    except pl.exceptions.PolarsError as error:
        content.check_encoding()
        raise UnveilError("not lines of ids", where=content.path, found=str(error).splitlines()[0]) from None
    split = lines.with_row_index("row").select("row", words=pl.col("line").str.extract_all(r"[^ \t\r]+"))
    return split.filter(pl.col("words").list.len() > 0)


def _words(line: str) -> list[str]:
    return [word for word in re.split(r"[ \t\r]", line) if word]


@FORMATS.register
class JsonLines(Format):
    """one JSON object a line (also Amazon review files)"""

    name = "jsonl"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """The first line opens an object, or a list of objects, which `read` does not read."""
        return Likeness.CERTAIN if content.head[0].lstrip().startswith("{") or _is_list(content) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """The columns that are needed, as text; they are the keys of the objects, wherever these first occur."""
        if _is_list(content):
            hint = f"Take it apart: jq -c '.[]' {content.path.name} > log.jsonl"
            problem, expected = "one JSON list, not JSON lines", "one object a line"
            raise UnveilError(problem, where=content.path, expected=expected, hint=hint)
        try:
            keys = pl.scan_ndjson(content.for_polars(), infer_schema_length=None).collect_schema()
            names = assign_roles(list(keys), options.columns, content.path)
            _check_plain(content, names)
            frame = pl.read_ndjson(content.for_polars(), schema=dict.fromkeys(names.values(), pl.String))
        except pl.exceptions.PolarsError as error:
            raise _explained(content, error) from None
        return Table(content.path, frame.select(**names), names, content.line_of)


def _is_list(content: Content) -> bool:
    return re.match(r"\s*\[\s*[{\[]", content.text_start) is not None


def _check_plain(content: Content, names: dict[str, str]) -> None:
    for row, line in enumerate(islice(content.head, 100)):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for name in names.values():
            if isinstance(entry, dict) and isinstance(entry.get(name), list | dict):
                where = f"{content.path}, row {content.line_of(row)}, column {name}"
                raise UnveilError("not a plain value", where=where, found=str(entry[name]), expected="text or a number")


def _explained(content: Content, error: Exception) -> UnveilError:
    content.check_encoding()
    with content.lines() as lines:
        for number, line in enumerate(lines, start=1):
            foreign: list[str] = []  # Python also reads NaN and Infinity, which JSON does not have
            try:
                entry = json.loads(line, parse_constant=foreign.append) if line.strip() else {}
            except (ValueError, RecursionError):
                entry = None
            if not isinstance(entry, dict) or foreign:
                problem = f"{foreign[0]} is no value of JSON" if isinstance(entry, dict) else "not a JSON object"
                where, hint = f"{content.path}, row {number}", "Correct the line, or name another --format."
                return UnveilError(problem, where=where, found=line.strip(), expected="one object a line", hint=hint)
    return UnveilError("not JSON lines", where=content.path, found=str(error).splitlines()[0])


@FORMATS.register
class Parquet(Format):
    """Apache Parquet"""

    name = "parquet"

    def read(self, content: Content, options: ReadOptions) -> Table:
        source = io.BytesIO(content.raw) if isinstance(content.raw, bytes) else str(content.raw)
        with parquet_errors(content.path):
            scan = pl.scan_parquet(source, glob=False)
            names = assign_roles(list(scan.collect_schema()), options.columns, content.path)
            return Table(content.path, scan.select(**names).collect(), names)


@contextmanager
def parquet_errors(path: object) -> Iterator[None]:
    """Inside, a file that begins like Parquet and cannot be read as such is a clear error."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        found = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnveilError("not a whole Parquet file", where=path, found=found, hint="Copy or write it again.") from None
