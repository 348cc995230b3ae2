"""Lines of ids between blanks: what the formats without columns share."""

import polars as pl

from unveil.data.sources.columns import named
from unveil.data.sources.content import Content
from unveil.data.sources.options import ReadOptions
from unveil.errors import UnveilError

_NO_CHARACTER_OF_TEXT = "\x01"


def words(line: str) -> list[str]:
    """The ids on one line, which stand between spaces or tabs."""
    return line.replace("\t", " ").split(" ") if "  " not in line else line.replace("\t", " ").split()


def is_header(content: Content, options: ReadOptions) -> bool:
    """Whether the first line names columns, which these formats do not have."""
    return named(words(content.head[0]), options.columns)


def read_words(content: Content) -> pl.DataFrame:
    """`row` (the line, from 0) and `words` of each line that is not blank."""
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
