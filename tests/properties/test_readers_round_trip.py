"""Any log, written in any format, reads back to the same `Interactions`."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.data.interactions import OPTIONAL, Interactions
from unveil.data.readers.table import MOST_STEPS
from unveil.data.writers import write

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp", "Cf"]), min_size=1)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
NUMBER = st.integers(0, 10**7).map(str)
PADDED = NUMBER.map(lambda number: f"00{number}")
ID = (
    TEXT
    | NUMBER
    | PADDED
    | st.sampled_from(['"', '""', ",", "\n", "\r\n", "\t", "a\rb", "null", "NaN", "true", "#", "é"])
)
SECONDS = st.integers(10**8, 10**10).map(lambda second: second * 1_000_000)
MOMENT = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
MICROSECOND = st.integers(1 - 2**32 * 10**6, 2**32 * 10**6 - 1)
TIED = st.sampled_from([0, 1, 10**15, 10**15 + 1])
COLUMN: dict[str, st.SearchStrategy[Any]] = {
    "rating": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "clicked": st.booleans(),
    "exposed": st.booleans(),
    "propensity": st.floats(0, 1, exclude_min=True),
    "position": st.integers(0, 2**31 - 1),
    "randomised": st.booleans(),
    "step": st.integers(0, MOST_STEPS - 1),
}
TYPES = {
    name: {"f": pl.Float32 if kind.itemsize == 4 else pl.Float64, "b": pl.Boolean}.get(
        kind.kind, pl.Int32 if kind.itemsize == 4 else pl.Int64
    )
    for name, kind in OPTIONAL.items()
}


@st.composite
def logs(draw: st.DrawFn, ids: st.SearchStrategy[str] = ID, optional: bool = True) -> Interactions:
    """Logs of two to twenty events, at least two users and two items."""
    size = draw(st.integers(2, 20))
    frame: dict[str, list[Any]] = {}
    for role in ("user", "item"):
        pool = draw(st.lists(ids, min_size=2, max_size=6, unique=True))
        frame[role] = [pool[0], pool[1], *draw(st.lists(st.sampled_from(pool), min_size=size - 2, max_size=size - 2))]
    if optional:
        clock = draw(st.sampled_from([SECONDS, MOMENT, MICROSECOND, TIED]))
        present = {"time": clock, **COLUMN}
        for name in draw(st.sets(st.sampled_from(sorted(present)))):
            frame[name] = draw(st.lists(present[name], min_size=size, max_size=size))
    return Interactions.from_frame(pl.DataFrame(frame, schema_overrides={k: v for k, v in TYPES.items() if k in frame}))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst", "tsv", "jsonl", "jsonl.gz", "parquet"])
@given(log=logs())
@SETTINGS
def test_a_written_log_reads_back_the_same(suffix: str, log: Interactions, tmp_path: Path) -> None:
    path = tmp_path / f"log.{suffix}"
    write(log, path)
    assert Interactions.read(path) == log


@given(log=logs(ids=WORD | NUMBER | PADDED))
@SETTINGS
def test_an_inter_file_reads_back_the_same(log: Interactions, tmp_path: Path) -> None:
    write(log, tmp_path / "log.inter")
    assert Interactions.read(tmp_path / "log.inter") == log


@pytest.mark.parametrize(("name", "delimiter"), [("semicolon", ";"), ("pipe", "|"), ("csv", ",")])
@given(log=logs(optional=False))
@SETTINGS
def test_any_delimiter(name: str, delimiter: str, log: Interactions, tmp_path: Path) -> None:
    rows = io.StringIO()
    writer = csv.writer(rows, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(["user_id", "item_id"])
    writer.writerows(log.to_frame().rows())
    path = tmp_path / "log"
    path.write_bytes(rows.getvalue().encode())
    assert Interactions.read(path) == Interactions.read(path, name) == log


def _stars(log: Interactions) -> Interactions:
    """The same log with ratings of 1 to 5 and whole seconds, which is all that some vendors' files carry."""
    half = (np.arange(len(log)) % 10 / 2 + 0.5).astype(np.float32)
    when = (10**9 + np.arange(len(log))[::-1] // 2 * 7) * 1_000_000
    return Interactions(log.user, log.item, log.users, log.items, time=when.astype(np.int64), rating=half)


def _u_data(log: Interactions) -> str:
    return "".join(f"{u}\t{i}\t{r}\t{t // 10**6}\n" for u, i, t, r in log.to_frame().rows())


def _ratings_dat(log: Interactions) -> str:
    return "".join(f"{u}::{i}::{r:g}::{t // 10**6}\n" for u, i, t, r in log.to_frame().rows())


def _amazon_2014(log: Interactions) -> str:
    return "".join(f"{u},{i},{r},{t // 10**6}\n" for u, i, t, r in log.to_frame().rows())


def _amazon_2018(log: Interactions) -> str:
    return "".join(f"{i},{u},{r},{t // 10**6}\n" for u, i, t, r in log.to_frame().rows())


def _amazon_2023(log: Interactions) -> str:
    rows = (f"{u},{i},{r},{t // 1000}\n" for u, i, t, r in log.to_frame().rows())
    return "user_id,parent_asin,rating,timestamp\n" + "".join(rows)


def _ratings_csv(log: Interactions) -> str:
    rows = (f"{u},{i},{r},{t // 10**6}\n" for u, i, t, r in log.to_frame().rows())
    return "userId,movieId,rating,timestamp\n" + "".join(rows)


def _reviews(log: Interactions) -> str:
    keys = ("reviewerID", "asin", "overall", "unixReviewTime")
    entries = (dict(zip(keys, (u, i, r, t // 10**6), strict=True)) for u, i, t, r in log.to_frame().rows())
    return "".join(json.dumps(entry) + "\n" for entry in entries)


PLAIN = st.text("ABCxyz019é_-.", min_size=1)
VENDORS: dict[str, Callable[[Interactions], str]] = {
    "movielens-100k": _u_data,
    "movielens-1m": _ratings_dat,
    "amazon-2014": _amazon_2014,
    "amazon-2018": _amazon_2018,
    "amazon-2023": _amazon_2023,
    "movielens": _ratings_csv,
    "jsonl": _reviews,
}


@pytest.mark.parametrize("name", VENDORS)
@given(log=logs(ids=PLAIN, optional=False).map(_stars), pack=st.sampled_from(["", "gz", "zst"]))
@SETTINGS
def test_a_vendors_file_reads_back_the_same(name: str, log: Interactions, pack: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(_packed(VENDORS[name](log).encode(), pack))
    assert Interactions.read(path, name) == log


@given(log=logs(ids=PLAIN, optional=False))
@SETTINGS
def test_pairs_read_back_the_same(log: Interactions, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("".join(f"{user} {item}\n" for user, item in log.to_frame().rows()), "utf-8")
    assert Interactions.read(path, "pairs") == log


@given(log=logs(ids=PLAIN, optional=False))
@SETTINGS
def test_sequences_read_back_in_the_order_of_each_user(log: Interactions, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    histories = log.to_frame().group_by("user", maintain_order=True).agg("item").rows()
    path.write_text("".join(f"{user} {' '.join(items)}\n" for user, items in histories), "utf-8")
    expected = pl.DataFrame(histories, schema=["user", "item"], orient="row").explode("item")
    assert Interactions.read(path, "sequences") == Interactions.from_frame(expected)


def _packed(content: bytes, pack: str) -> bytes:
    if pack == "gz":
        return gzip.compress(content)
    return zstandard.compress(content) if pack == "zst" else content
