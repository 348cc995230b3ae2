"""Formats with a whole record on each line: pairs, sequences, JSON lines; and Parquet."""

import io
import json
import re
from itertools import islice

import polars as pl

from unveil.data.readers.columns import ReadOptions, assigned, named
from unveil.data.readers.content import Content
from unveil.data.readers.registry import Likeness, register, register_binary
from unveil.data.readers.table import Table, counted_from
from unveil.errors import UnveilError

_NO_CHARACTER_OF_TEXT = "\x01"


def words(line: str) -> list[str]:
    """The ids on one line, which stand between spaces or tabs."""
    return [word for word in re.split(r"[ \t\r]", line) if word]


def is_header(content: Content, options: ReadOptions) -> bool:
    """Whether the first line names columns, which these formats do not have, or has the delimiters of another."""
    first, *others = content.head
    unlike = not _has_digit(first) and bool(others) and all(map(_has_digit, others))
    return unlike or bool(set(first) & set(',;|"')) or named(words(first), options.columns)


def _has_digit(line: str) -> bool:
    return any(map(str.isdigit, line))


def read_words(content: Content, options: ReadOptions) -> pl.DataFrame:
    """`row` (the line, from 0) and `words` of each line that is not blank."""
    if options.columns:
        role = next(iter(options.columns))
        hint = f"Leave --{role}-col out, or name another --format."
        raise UnveilError("this format has no named columns", where=content.path, hint=hint)
    try:
        lines = pl.read_csv(
            content.body,
            has_header=False,
            separator=_NO_CHARACTER_OF_TEXT,
            quote_char=None,
            schema={"line": pl.String},
            glob=False,
        )
    except pl.exceptions.PolarsError as error:
        content.check_encoding()
        raise UnveilError("not lines of ids", where=content.path, found=str(error).splitlines()[0]) from None
    split = lines.with_row_index("row").select("row", words=pl.col("line").str.extract_all(r"[^ \t\r]+"))
    return split.filter(pl.col("words").list.len() > 0)


class Pairs:
    """Each user's events in order; there is no time."""

    name = "pairs"
    summary = "`user item` on each line, in order, no header (SASRec, BERT4Rec)"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Two words on every line."""
        two = all(len(words(line)) == 2 for line in content.head)
        return Likeness.SHAPE if two and not is_header(content, options) else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """Users and items; a line of more or fewer words is an error."""
        lines = read_words(content, options)
        odd = lines.filter(pl.col("words").list.len() != 2)
        if len(odd):
            raise UnveilError(
                "not a pair",
                where=f"{content.path}, row {odd['row'][0] + 1}",
                found=" ".join(odd["words"][0]),
                expected="a user and an item",
                hint="Correct the line, or name another --format.",
            )
        frame = lines.select(user=pl.col("words").list.first(), item=pl.col("words").list.last())
        return Table(content.path, frame, {"user": "1", "item": "2"}, lambda row: int(lines["row"][row]) + 1)


register(Pairs())


class SequenceLines:
    """The first word of a line is the user, the others are the items."""

    name = "sequences"
    summary = "one user's whole sequence on each line: user item item …, no header (S3Rec)"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """Whole numbers on lines of unequal length; other words, and tables of equal lines, have to be named."""
        lines = [words(line) for line in content.head]
        numbers = all(re.fullmatch(r"[\d \t]+", line) for line in content.head)
        unequal = len({len(line) for line in lines}) > 1 and min(map(len, lines)) > 1
        return Likeness.SHAPE if numbers and unequal else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """One row for each item; a user without items is an error."""
        lines = read_words(content, options)
        lonely = lines.filter(pl.col("words").list.len() < 2)
        if len(lonely):
            raise UnveilError(
                "a user without items",
                where=f"{content.path}, row {lonely['row'][0] + 1}",
                found=lonely["words"][0][0],
                expected="a user and at least one item",
            )
        split = lines.select("row", user=pl.col("words").list.first(), item=pl.col("words").list.slice(1))
        events = split.explode("item")
        names = {"user": "1", "item": "2 and on"}
        return Table(content.path, events.drop("row"), names, lambda row: int(events["row"][row]) + 1)


register(SequenceLines())


class JsonLines:
    """Columns are the keys of the objects, wherever in the file they first occur."""

    name = "jsonl"
    summary = "one JSON object a line (also Amazon review files)"

    def likeness(self, content: Content, options: ReadOptions) -> Likeness:
        """The first line opens an object, or a list of objects, which `read` refuses."""
        opens = content.head[0].lstrip().startswith("{") or _is_list(content)
        return Likeness.CERTAIN if opens else Likeness.NO

    def read(self, content: Content, options: ReadOptions) -> Table:
        """The columns that are needed, as text."""
        _refuse_list(content)
        keys = _keys(content)
        places = assigned(keys, options.columns, content.path)
        names = {role: keys[place] for role, place in places.items()}
        _refuse_nested(content, names)
        try:
            frame = pl.read_ndjson(content.for_polars(), schema=dict.fromkeys(names.values(), pl.String))
        except pl.exceptions.PolarsError as error:
            raise _explained(content, error) from None
        frame = frame.select(**{role: pl.col(name) for role, name in names.items()})
        return Table(content.path, frame, names, content.line_of)


def _is_list(content: Content) -> bool:
    return re.match(r"\s*\[\s*[{\[]", content.text_start) is not None


def _refuse_list(content: Content) -> None:
    if _is_list(content):
        raise UnveilError(
            "one JSON list, not JSON lines",
            where=content.path,
            expected="one object a line",
            hint=f"Take it apart: jq -c '.[]' {content.path.name} > log.jsonl",
        )


def _keys(content: Content) -> list[str]:
    try:
        return list(pl.scan_ndjson(content.for_polars(), infer_schema_length=None).collect_schema())
    except pl.exceptions.PolarsError as error:
        raise _explained(content, error) from None


def _refuse_nested(content: Content, names: dict[str, str]) -> None:
    """Among the first lines: a list or an object where a plain value should be."""
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
    """The first line that is not an object; or what the parser says."""
    content.check_encoding()
    with content.lines() as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip() and (problem := _problem(line)):
                return UnveilError(
                    problem,
                    where=f"{content.path}, row {number}",
                    found=line.strip(),
                    expected="one object a line",
                    hint="Correct the line, or name another --format.",
                )
    return UnveilError("not JSON lines", where=content.path, found=str(error).splitlines()[0])


def _problem(line: str) -> str | None:
    """Why a line is none; Python is glad to read NaN and Infinity, which JSON does not have."""
    foreign: list[str] = []
    try:
        entry = json.loads(line, parse_constant=foreign.append)
    except (ValueError, RecursionError):
        return "not a JSON object"
    if not isinstance(entry, dict):
        return "not a JSON object"
    return f"{foreign[0]} is no value of JSON" if foreign else None


register(JsonLines())


class Parquet:
    """Columns by name; rows count from 1."""

    name = "parquet"
    summary = "Apache Parquet"

    def read(self, content: Content, options: ReadOptions) -> Table:
        """The columns that are needed, in their own types."""
        names = _columns(content)
        places = assigned(names, options.columns, content.path)
        try:
            frame = pl.read_parquet(_source(content), columns=[names[place] for place in places.values()], glob=False)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise damaged(content.path, error) from None
        chosen = {role: names[place] for role, place in places.items()}
        return Table(content.path, frame.select(**chosen), chosen, counted_from(1))


def _columns(content: Content) -> list[str]:
    try:
        return list(pl.scan_parquet(_source(content), glob=False).collect_schema())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(content.path, error) from None


def _source(content: Content) -> io.BytesIO | str:
    return io.BytesIO(content.raw) if isinstance(content.raw, bytes) else str(content.raw)


def damaged(path: object, error: BaseException) -> UnveilError:
    """The error for a file that begins like Parquet and cannot be read as such."""
    return UnveilError(
        "not a whole Parquet file",
        where=path,
        found=(str(error).splitlines() or [type(error).__name__])[0],
        hint="Copy or write it again.",
    )


register_binary(b"PAR1", Parquet())
