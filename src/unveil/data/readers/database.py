"""A SQL query on a database URL, through SQLAlchemy. The database is only ever read."""

import logging
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import polars as pl

from unveil.data.readers.table import ReadOptions, Table, assign_roles
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

_SELECT = "Pass --query 'SELECT user_id, item_id, timestamp FROM …'."
#: How a statement begins that reads; comments may stand before it.
_READS = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/|\()*(select|with|values|table)\b", re.IGNORECASE | re.DOTALL)
#: All that SQLite may do; a pragma is how SQLAlchemy asks for the isolation.
_READING = (
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE),
    *(sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_TRANSACTION),
)
_SECONDS = 5  # to wait for a server, or for a lock


def is_url(source: object) -> bool:
    """Whether this names a database rather than a file."""
    return isinstance(source, str) and re.match(r"[A-Za-z][\w+.-]*://", source) is not None


def shown(source: str) -> str:
    """The URL without its password."""
    masked = re.sub(r"://([^:/?]*):.*@", r"://\1:***@", source, flags=re.DOTALL)
    return re.sub(r"(?i)(password|passwd|pwd|secret|token)=[^&]*", r"\1=***", masked)


def read_query(source: str, options: ReadOptions) -> Table:
    """The rows that the query gives; columns by the names given, or known."""
    if not options.query:
        raise UnveilError("a database needs a query", where=shown(source), hint=_SELECT)
    if not _READS.match(options.query):
        raise UnveilError("the query does not read", where=shown(source), found=options.query, hint=_SELECT)
    try:
        from sqlalchemy import make_url
        from sqlalchemy.exc import SQLAlchemyError
    except ModuleNotFoundError:
        raise UnveilError("reading a database needs SQLAlchemy", hint="Run: pip install 'unveil[sql]'.") from None
    logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())  # it tells of cursors that a signal left open
    try:
        with _engine(make_url(source)).connect() as connection:
            return _rows(connection, options, shown(source))
    except (SQLAlchemyError, ImportError, ValueError, TypeError, OverflowError) as error:
        text = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
        password = re.search(r"://[^:/?]*:(.*)@", source)
        line = text[0].replace(password[1], "***") if password and password[1] else text[0]
        hint = "Check the address, the name, the password and the query."
        raise UnveilError(f"cannot read from the database: {line}", where=shown(source), hint=hint) from None


def _engine(url: "URL") -> "Engine":
    from sqlalchemy import NullPool, create_engine

    if url.get_backend_name() == "sqlite":
        return create_engine("sqlite://", creator=partial(_sqlite, url), poolclass=NullPool)
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    postgres = {"connect_args": {"connect_timeout": _SECONDS}, "execution_options": {"postgresql_readonly": True}}
    return create_engine(url, poolclass=NullPool, **(postgres if url.get_backend_name() == "postgresql" else {}))


def _sqlite(url: "URL") -> sqlite3.Connection:
    """Read-only, so that a file that is not there is not made; nor is one by ATTACH or VACUUM INTO."""
    if not url.database or not Path(url.database).is_file():
        raise UnveilError("no such database file", where=shown(str(url)), hint="Write sqlite:///PATH of a file.")
    path = f"file:{quote(url.database)}?mode=ro"
    connection = sqlite3.connect(path, uri=True, timeout=_SECONDS, check_same_thread=False)
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY)
    return connection


def _rows(connection: "Connection", options: ReadOptions, source: str) -> Table:
    streamed = connection.execution_options(stream_results=True, no_parameters=True)
    with closing(streamed.exec_driver_sql(options.query or "")) as result:
        if not result.returns_rows:
            raise UnveilError("the query gives no rows", where=source, found=options.query, expected="a SELECT")
        keys = list(result.keys())
        names = assign_roles(keys, options.columns, source)
        places = {role: keys.index(name) for role, name in names.items()}
        cells: dict[str, list[Any]] = {role: [] for role in names}
        for part in result.partitions(50_000):
            for role, place in places.items():
                cells[role].extend(row[place] for row in part)
    return Table(source, pl.DataFrame({role: _column(values) for role, values in cells.items()}), names)


def _column(values: Sequence[Any]) -> pl.Series:
    """A column of one type; where a database mixes types, or has its own, of text."""
    with suppress(pl.exceptions.PolarsError):
        column = pl.Series(values, strict=False)
        if column.dtype != pl.Object:
            return column
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
