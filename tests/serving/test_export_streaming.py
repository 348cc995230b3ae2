import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from unveil.errors import UnveilError
from unveil.serving.export import GATHERED, write_frames

SCHEMA = {"a": pl.String, "b": pl.Float32}


def frames(count: int, rows: int) -> Iterator[pl.DataFrame]:
    for n in range(count):
        yield pl.DataFrame({"a": [f"{n}-{row}" for row in range(rows)], "b": [float(n)] * rows}, schema=SCHEMA)


def read(path: Path) -> pl.DataFrame:
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    return pl.read_csv(path, schema=SCHEMA) if path.suffix == ".csv" else pl.read_ndjson(path, schema=SCHEMA)


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl"])
@pytest.mark.parametrize(("count", "rows"), [(0, 0), (3, 2), (5, 30_000)])
def test_what_is_written_is_all_of_it_in_order(name: str, count: int, rows: int, tmp_path: Path) -> None:
    path = tmp_path / name
    assert write_frames(frames(count, rows), SCHEMA, path) == count * rows
    expected = pl.concat([pl.DataFrame(schema=SCHEMA), *frames(count, rows)])
    if count or name == "x.parquet":
        assert_frame_equal(read(path), expected)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_what_goes_wrong_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[pl.DataFrame]:
        yield from frames(1, 3)
        raise UnveilError("the model has diverged")

    with pytest.raises(UnveilError, match="the model has diverged"):
        write_frames(broken(), SCHEMA, tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())


def test_a_kind_of_file_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match=r"unknown kind of file: found '\.xlsx'"):
        write_frames(frames(1, 1), SCHEMA, tmp_path / "x.xlsx")


def test_being_told_to_stop_is_heard_in_the_middle(tmp_path: Path) -> None:
    def heard(number: int, frame: FrameType | None) -> None:
        raise SystemExit(number)

    def frames() -> Iterator[pl.DataFrame]:
        os.kill(os.getpid(), signal.SIGTERM)
        for nth in range(1000):
            time.sleep(0.01)
            yield pl.DataFrame({"n": pl.repeat(nth, GATHERED, eager=True)})

    before, begun = signal.signal(signal.SIGTERM, heard), time.monotonic()
    try:
        with pytest.raises(SystemExit):
            write_frames(frames(), {"n": pl.Int32}, tmp_path / "lists.parquet")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.monotonic() - begun < 9
    assert not list(tmp_path.iterdir())
