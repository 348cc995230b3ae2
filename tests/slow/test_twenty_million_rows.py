"""A log of the size of ml-20m, read, filtered, indexed and split within bounds of memory."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from benchmarks.generated import EVENTS, ITEMS, USERS, write_ratings_csv

MOST_MIB = 8 * 1024

REPORT = """
import json, sys
from benchmarks.memory import peak_mib
from unveil import Filters, Interactions, Sequences, leave_one_out

log = Filters(min_item=5, min_user=5)(Interactions.read(sys.argv[1]))
split = leave_one_out(Sequences.of(log))
found = {"users": len(log.users), "items": len(log.items), "events": len(log), "peak_mib": peak_mib()}
print(json.dumps(found | {"train": len(split.train), "test": len(split.test)}))
"""


@pytest.mark.slow
def test_a_log_of_twenty_million_rows_fits(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    write_ratings_csv(path)
    done = subprocess.run([sys.executable, "-c", REPORT, path], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    often = pl.scan_csv(path).group_by("movieId").len().filter(pl.col("len") >= 5).collect()
    assert (found["users"], found["items"]) == (USERS, len(often))
    assert found["items"] <= ITEMS
    assert found["events"] == int(often["len"].sum()) <= EVENTS
    assert found["train"] == found["events"] - 2 * USERS
    assert found["test"] == USERS
    assert found["peak_mib"] < MOST_MIB
