"""Lines of ids between blanks: what the formats without columns share."""

import re

import polars as pl

from unveil.data.sources.columns import named
from unveil.data.sources.content import Content
from unveil.data.sources.options import ReadOptions
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
