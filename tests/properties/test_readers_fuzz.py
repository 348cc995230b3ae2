"""Damaged files: a clear error or a valid log, never a traceback, whatever is cut, flipped, inserted or swapped.

`UNVEIL_FUZZ_CASES` sets the number of damaged files for each format.
"""

import gzip
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

CASES = int(os.environ.get("UNVEIL_FUZZ_CASES", "60"))

USERS = ["A1YJEY40YUW4SE", "0104257", "ünï", "u 4", "A3"]
ITEMS = ["B000000001", "0439893577", "x", "B00TEST999"]
EVENTS = [(USERS[n % 5], ITEMS[n % 4], 1 + n % 5, 1_400_000_000 + 977 * n) for n in range(23)]
PLAIN = [(1 + n % 5, 1 + n % 7, 1 + n % 5, 1_400_000_000 + 977 * n) for n in range(23)]
NASTY = [
    b"\0",
    b"\xff",
    b'"',
    b"'",
    b"\n",
    b"\r",
    b",",
    b"\t",
    b"::",
    b"{",
    b"}",
    b"nan",
    b"inf",
    b"1e400",
    b"-",
    b"\xe2\x80",
]


def _rows(rows: Sequence[tuple[object, ...]], delimiter: str, header: str = "") -> bytes:
    lines = [header] if header else []
    return "".join(f"{line}\n" for line in [*lines, *(delimiter.join(map(str, row)) for row in rows)]).encode()


def _parquet() -> bytes:
    file = io.BytesIO()
    schema = ["user_id", "item_id", "rating", "timestamp"]
    pl.DataFrame(EVENTS, schema=schema, orient="row").write_parquet(file)
    return file.getvalue()


def _json(names: tuple[str, ...]) -> bytes:
    return pl.DataFrame(EVENTS, schema=list(names), orient="row").write_ndjson().encode()


CSV = _rows([(*event, 0.5, 1) for event in EVENTS], ",", "user_id,item_id,rating,timestamp,propensity,clicked")
VALID = {
    "csv": CSV,
    "csv quoted": _rows([(f'"{u}"', f'"{i}"', t) for u, i, _, t in EVENTS], ",", "uid,asin,ts"),
    "tsv": _rows(EVENTS, "\t", "user_id\titem_id\trating\ttimestamp"),
    "semicolon": _rows(EVENTS, ";", "user_id;item_id;stars;time"),
    "pipe": _rows(EVENTS, "|", "user_id|item_id|stars|time"),
    "iso": _rows(
        [(u, i, f"2024-05-{n + 1:02d}T10:00:00Z") for n, (u, i, *_) in enumerate(EVENTS)], ",", "uid,iid,date"
    ),
    "movielens": _rows(PLAIN, ",", "userId,movieId,rating,timestamp"),
    "u.data": _rows(PLAIN, "\t"),
    "ratings.dat": _rows(PLAIN, "::"),
    "amazon-2014": _rows([(f"A1YJEY40YUW4S{u}", f"B00000000{i}", r, t) for u, i, r, t in PLAIN], ","),
    "amazon-2018": _rows([(f"B00000000{i}", f"A1YJEY40YUW4S{u}", r, t) for u, i, r, t in PLAIN], ","),
    "amazon-2023": _rows(PLAIN, ",", "user_id,parent_asin,rating,timestamp"),
    "pairs": _rows([row[:2] for row in PLAIN], " "),
    "sequences": _rows([tuple(range(n, 3 * n + 2)) for n in range(1, 9)], " "),
    "inter": _rows(EVENTS, "\t", "user_id:token\titem_id:token\trating:float\ttimestamp:float"),
    "kuairand": _rows(
        [(u, i, 1000 * t, r % 2, 0) for u, i, r, t in PLAIN], ",", "user_id,video_id,time_ms,is_click,is_rand"
    ),
    "jsonl": _json(("user_id", "item_id", "rating", "timestamp")),
    "reviews": _json(("reviewerID", "asin", "overall", "unixReviewTime")),
    "parquet": _parquet(),
    "csv.gz": gzip.compress(CSV, mtime=0),
    "csv.zst": zstandard.compress(CSV),
    "parquet.gz": gzip.compress(_parquet(), mtime=0),
}


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data))]


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    flipped = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        flipped[place] = rng.integers(256)
    return bytes(flipped)


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    place = rng.integers(len(data) + 1)
    return data[:place] + NASTY[rng.integers(len(NASTY))] + data[place:]


def _drop_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    place = rng.integers(len(data))
    return data[:place] + data[place + rng.integers(1, 20) :]


def _drop_line(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[rng.integers(len(lines))]
    return b"".join(lines)


def _repeat_line(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.splitlines(keepends=True)
    lines.insert(int(rng.integers(len(lines) + 1)), lines[rng.integers(len(lines))])
    return b"".join(lines)


def _swap_delimiters(data: bytes, rng: np.random.Generator) -> bytes:
    old, new = rng.choice([b",", b"\t", b";", b"|", b":", b" ", b"\n"], size=2, replace=False)
    return data.replace(bytes(old), bytes(new), int(rng.integers(1, 30)))


def _blank_field(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    place = rng.integers(len(lines))
    fields = lines[place].split(b",")
    fields[rng.integers(len(fields))] = NASTY[rng.integers(len(NASTY))] if rng.random() < 0.5 else b""
    lines[place] = b",".join(fields)
    return b"\n".join(lines)


DAMAGES = (_cut, _flip, _insert, _drop_bytes, _drop_line, _repeat_line, _swap_delimiters, _blank_field)


@pytest.mark.parametrize("kind", VALID)
def test_the_undamaged_file_is_read(kind: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(VALID[kind])
    assert len(Interactions.read(tmp_path / "log")) >= 23


@pytest.mark.parametrize("kind", VALID)
def test_a_damaged_file_gives_an_error_or_a_log(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    path = tmp_path / "log"
    for _ in range(CASES):
        damaged = VALID[kind]
        for damage in rng.choice(len(DAMAGES), size=rng.integers(1, 4)):
            damaged = DAMAGES[damage](damaged, rng) if damaged else damaged
        path.write_bytes(damaged)
        _read_or_refuse(path, damaged)


@pytest.mark.parametrize(("kind", "delimiter", "header"), [("csv", ",", 1), ("u.data", "\t", 0), ("pairs", " ", 0)])
def test_what_is_read_from_a_damaged_file_is_what_stands_there(
    kind: str, delimiter: str, header: int, tmp_path: Path
) -> None:
    """Not a row padded, cut, dropped or moved: compared with splitting the lines."""
    rng = np.random.default_rng(11)
    path, read = tmp_path / "log", 0
    name = {"csv": "csv", "u.data": "movielens-100k", "pairs": "pairs"}[kind]
    for _ in range(CASES):
        damaged = DAMAGES[rng.integers(len(DAMAGES))](VALID[kind], rng)
        path.write_bytes(damaged)
        if set(damaged) & set(b'"\r') or (header and not damaged.startswith(b"user_id,item_id,")):
            continue
        try:
            log = Interactions.read(path, name)
        except UnveilError:
            continue
        lines = [line for line in damaged.decode().split("\n") if line.strip()][header:]
        assert log.to_frame().select("user", "item").rows() == [tuple(_split(line, delimiter)[:2]) for line in lines]
        read += 1
    assert read > CASES // 20


def _split(line: str, delimiter: str) -> list[str]:
    return re.findall(r"[^ \t]+", line) if delimiter == " " else line.split(delimiter)


def _read_or_refuse(path: Path, damaged: bytes) -> None:
    try:
        log = Interactions.read(path)
    except UnveilError:
        return
    except BaseException as error:
        raise AssertionError(f"{damaged!r} gave {type(error).__name__}: {error}") from error
    _assert_valid(log)


def _assert_valid(log: Interactions) -> None:
    assert len(log.users) > 1
    assert len(log.items) > 1
    for index, ids in ((log.user, log.users), (log.item, log.items)):
        assert np.array_equal(np.unique(index), np.arange(len(ids)))
        assert "" not in ids
    if log.rating is not None:
        assert np.isfinite(log.rating).all()
    if log.propensity is not None:
        assert ((log.propensity > 0) & (log.propensity <= 1)).all()
