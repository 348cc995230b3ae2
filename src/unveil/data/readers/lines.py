"""Formats without delimited columns: pairs and sequences of ids on lines, JSON lines, Parquet."""

import io
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar

import polars as pl

from unveil.data.readers.base import FORMATS, Format, Likeness, are_nearly_all
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

    name, items, problem = "pairs", "2", "not a pair"
    row = expected = "a user and an item"
    odd = pl.col("words").list.len() != 2

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Two words on every line, of which the first names no columns."""
        first, *others = content.head
        unlike = not _DIGIT.search(first) and bool(others) and all(map(_DIGIT.search, others))
        header = unlike or is_header(_words(first), options.columns)
        return Likeness.SHAPE if self.rows(content) and not header else Likeness.NO

    def fits(self, line: str) -> bool:
        """Without the delimiters of other formats."""
        return len(_words(line)) == 2 and not set(line) & set(',;|"') and "::" not in line


@FORMATS.register
class SequenceLines(Words):
    """one user's whole sequence on each line: user item item …, no header (S3Rec)"""

    name, items = "sequences", "2 and on"
    problem = "a user without items"
    row = expected = "a user and at least one item"
    odd = pl.col("words").list.len() < 2

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Whole numbers on lines of different lengths, each of another user; anything else has to be named."""
        words = [_words(line) for line in self.rows(content)]
        commonest = max(Counter(map(len, words)).values(), default=0)
        distinct = len({first for first, *_ in words}) == len(words)
        table = len(words) == 1 or are_nearly_all(commonest, len(words))
        return Likeness.SHAPE if words and distinct and not table else Likeness.NO

    def fits(self, line: str) -> bool:
        return re.fullmatch(r"[\d \t]+", line) is not None and len(_words(line)) > 1


@FORMATS.register
class RatingMatrix(Format):
    """a matrix of ratings: a line a user, a column an item, both counted from 0; 0: not rated (Coat)"""

    name, row = "matrix", "whole numbers, a rating or 0 for every item"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Many columns of whole numbers, most of them 0: a row of another length is an error of `read`."""
        rows = [_words(line) for line in self.rows(content)]
        wide = len(rows) > 1 and sorted(map(len, rows))[len(rows) // 2] > 9
        sparse = 2 * sum(row.count("0") for row in rows) > sum(map(len, rows))
        return Likeness.NAMES if wide and sparse else Likeness.NO

    def fits(self, line: str) -> bool:
        return re.fullmatch(r"[\d \t]+", line) is not None

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
        lines = content.as_lines()
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

    name, row = "jsonl", "one JSON object a line"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Nearly all lines open an object, or the first one; or a list of objects, which `read` does not read."""
        opened = self.fits(content.head[0]) or self.rows(content) or _is_list(content)
        return Likeness.CERTAIN if opened else Likeness.NO

    def fits(self, line: str) -> bool:
        return line.lstrip().startswith("{")

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
    """Inside, a file that begins like Parquet and cannot be read as such is a clear error, and nothing else is said."""
    try:
        with _without_panics():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        found = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnveilError("not a whole Parquet file", where=path, found=found, hint="Copy or write it again.") from None


@contextmanager
def _without_panics() -> Iterator[None]:
    """Inside, what a thread of Rust writes to standard error when it ends, up to hundreds of lines, is not shown."""
    try:
        before = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
