"""Parquet files."""

import io

import polars as pl

from unveil.data.sources.columns import assigned
from unveil.data.sources.content import Content
from unveil.data.sources.options import ReadOptions
from unveil.data.sources.registry import register_binary
from unveil.data.sources.table import Table, counted_from
from unveil.errors import UnveilError


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
