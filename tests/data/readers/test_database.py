"""A SQL query as a log: on SQLite, and on a real PostgreSQL server."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.readers.postgres_server import Server, running
from unveil.data.interactions import Interactions
from unveil.data.readers import database
from unveil.errors import UnveilError

T0 = 1_714_566_600
ROWS = [("0104257", "a,b", T0, 4.5, 1), ("7", "é", T0 + 1, 3.0, 0), ("0104257", "é", T0 + 2, 1.0, 1)]
EXPECTED = [(user, item, time * 10**6, rating, bool(click)) for user, item, time, rating, click in ROWS]
SELECT = "SELECT * FROM log ORDER BY timestamp"


@pytest.fixture
def sqlite(tmp_path: Path) -> Path:
    path = tmp_path / "a log %.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE log (user_id, item_id, timestamp, rating, click)")
        connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", ROWS)
    connection.close()
    return path


def _told(url: str, query: str | None) -> str:
    with pytest.raises(UnveilError) as caught:
        Interactions.read(url, query=query)
    said = str(caught.value)
    assert "\n" not in said
    assert "s3cret" not in said
    return said


def test_sqlite(sqlite: Path) -> None:
    log = Interactions.read(f"sqlite:///{sqlite}", query=SELECT)
    assert log.to_frame().rows() == EXPECTED


def test_sqlite_with_other_names_and_mixed_types(sqlite: Path) -> None:
    query = (
        "SELECT user_id AS who, item_id AS what, datetime(timestamp, 'unixepoch') AS at FROM log WHERE '%:x' = '%:x'"
    )
    columns = {"user": "who", "item": "what", "time": "at"}
    log = Interactions.read(f"sqlite:///{sqlite}", query=query, columns=columns)
    assert log.to_frame().rows() == [row[:3] for row in EXPECTED]
    mixed = "SELECT 1 AS user_id, 'a' AS item_id UNION ALL SELECT 'x', 2 UNION ALL SELECT 1, 2"
    assert Interactions.read(f"sqlite:///{sqlite}", query=mixed).to_frame().rows() == [
        ("1", "a"),
        ("x", "2"),
        ("1", "2"),
    ]


def test_a_row_that_is_wrong(sqlite: Path) -> None:
    said = _told(
        f"sqlite:///{sqlite}", "SELECT user_id, item_id, nullif(rating, 3) AS rating FROM log ORDER BY timestamp"
    )
    assert "row 2, column rating: not a number, the cell is empty" in said
    assert "row 1, column user_id: no user" in _told(f"sqlite:///{sqlite}", "SELECT NULL AS user_id, item_id FROM log")
    blob = _told(f"sqlite:///{sqlite}", "SELECT x'00ff' AS user_id, item_id FROM log")
    assert "column user_id: not an id column" in blob


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT * FRM log", "syntax error"),
        ("DELETE FROM log", "the query does not read: found 'DELETE FROM log'. Pass --query"),
        ("SELECT user_id, rating FROM log", "no item column among 'user_id', 'rating'"),
        ("SELECT * FROM log WHERE 0", "no rows"),
        ("PRAGMA user_version = 5", "the query does not read"),
        (None, "a database needs a query. Pass --query"),
        ("", "a database needs a query"),
    ],
)
def test_wrong_queries(query: str | None, problem: str, sqlite: Path) -> None:
    assert problem in _told(f"sqlite:///{sqlite}", query)
    assert len(Interactions.read(f"sqlite:///{sqlite}", query=SELECT)) == 3


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert "no such database file" in _told(f"sqlite:///{tmp_path}/new.db", SELECT)
    assert "no such database file" in _told("sqlite://", SELECT)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_text("user_id,item_id\n" * 100)
    assert "file is not a database" in _told(f"sqlite:///{tmp_path}/log.db", SELECT)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@127.0.0.1:9/db",
        "postgresql://me:s3cret@127.0.0.1:port/db",
        "postgresql://127.0.0.1:9/db?user=me&password=s3cret",
        "postgresql://me:s3cret@/@host/db",
        "nosuchdb://me:s3cret@host/db",
        "http://me:s3cret@host/log.csv",
    ],
)
def test_unreachable_and_wrong_addresses_keep_the_password(url: str) -> None:
    assert "cannot read from the database" in _told(url, SELECT)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    import psycopg

    with running() as server:
        with psycopg.connect(server.url()) as connection:
            connection.execute(
                "CREATE TABLE log (user_id text, item_id text, timestamp bigint, rating real, click boolean)"
            )
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO log VALUES (%s, %s, %s, %s, %s::int::boolean)", ROWS)
        yield server


def test_postgresql(server: Server) -> None:
    assert Interactions.read(server.url(), query=SELECT).to_frame().rows() == EXPECTED


def test_postgresql_types(server: Server) -> None:
    query = """
        SELECT 7 AS user_id, gen_random_uuid() AS item_id, timestamptz '2024-05-01 14:30:00+02' AS ts, 4.5 AS rating
        UNION ALL SELECT 8, gen_random_uuid(), timestamptz '2024-05-01 12:30:00.000001Z', 3
    """
    log = Interactions.read(server.url(), query=query)
    assert log.users.ids.to_list() == ["7", "8"]
    assert log.time is not None
    assert log.time.tolist() == [T0 * 10**6, T0 * 10**6 + 1]
    assert log.rating is not None
    assert log.rating.tolist() == [4.5, 3]
    days = "SELECT n AS uid, n AS iid, date '2024-05-01' AS date FROM generate_series(1, 120000) AS n"
    log = Interactions.read(server.url().replace("postgresql:", "postgres:"), query=days)
    assert len(log) == len(log.users) == 120_000


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT * FROM nowhere", 'relation "nowhere" does not exist'),
        ("SELECT nothing FROM log", 'column "nothing" does not exist'),
        ("DELETE FROM log", "the query does not read"),
        ("WITH gone AS (DELETE FROM log RETURNING 1) SELECT * FROM gone", "cannot read from the database"),
        ("SELECT user_id, rating FROM log", "no item column among"),
    ],
)
def test_postgresql_wrong_queries(query: str, problem: str, server: Server) -> None:
    assert problem in _told(server.url(), query)
    assert len(Interactions.read(server.url(), query=SELECT)) == 3


def test_postgresql_wrong_password_and_database(server: Server) -> None:
    assert "password authentication failed" in _told(server.url(password="s3cret-wrong"), SELECT)
    assert 'database "elsewhere" does not exist' in _told(server.url(database="elsewhere"), SELECT)


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH 'NEW' AS other",
        "VACUUM INTO 'NEW'",
        "DELETE FROM log",
        "PRAGMA user_version = 3",
        "/* SELECT */ INSERT INTO log SELECT * FROM log",
        "WITH old AS (SELECT 1) DELETE FROM log",
    ],
)
def test_a_query_only_reads(query: str, sqlite: Path) -> None:
    before = sqlite.read_bytes()
    said = _told(f"sqlite:///{sqlite}", query.replace("NEW", str(sqlite.with_name("new.db"))))
    assert re.search("the query does not read|not authorized|authorization denied", said)
    assert list(sqlite.parent.iterdir()) == [sqlite]
    assert sqlite.read_bytes() == before


def test_what_sqlite_itself_keeps_from_writing(sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a statement that passes for a read makes no file."""
    monkeypatch.setattr(database, "_READS", re.compile(""))
    for query in ("ATTACH 'NEW' AS other", "VACUUM INTO 'NEW'"):
        said = _told(f"sqlite:///{sqlite}", query.replace("NEW", str(sqlite.with_name("new.db"))))
        assert re.search("not authorized|authorization denied", said)
    assert list(sqlite.parent.iterdir()) == [sqlite]


def test_reads_of_every_form(sqlite: Path) -> None:
    for query in (f"  -- all\n{SELECT}", "WITH each AS (SELECT * FROM log) SELECT * FROM each ORDER BY timestamp"):
        assert Interactions.read(f"sqlite:///{sqlite}", query=query).to_frame().rows() == EXPECTED


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_signal_while_rows_come_is_one_message(sqlite: Path) -> None:
    program = """
import os, signal, sys, threading, time
from unveil.cli.main import run
from unveil.data.readers import database
read = database._rows

def stopped(*arguments):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
    return read(*arguments)

database._rows = stopped
run()
"""
    query = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS user_id, x AS item_id FROM n"
    command = [sys.executable, "-c", program, "data", "describe", f"sqlite:///{sqlite}", "--query", query]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "unveil: stopped.\n")
