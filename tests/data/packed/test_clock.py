"""Times of many files are read as those of one file would be: judged over all of them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unveil.data.interactions import Interactions
from unveil.data.packed import pack

SECOND = 1_700_000_000
COLUMNS = {
    "seconds": [SECOND, SECOND + 1, SECOND + 2, SECOND + 2],
    "milliseconds": [SECOND * 1000, SECOND * 1000 + 1, SECOND * 1000 + 2, SECOND * 1000],
    "fractions": [SECOND + 0.25, SECOND + 0.5, SECOND + 1.0, SECOND + 0.125],
    "dates": [20231114, 20231115, 20231114, 20231116],
    "a date and no date": [20231114, 20231199, 20231114, 20231116],
    "whole numbers as text": ["1700000000", " 1700000001", "1700000002", "1700000000"],
    "fractions as text": ["1700000000", "1700000001", "1700000002.5", "1700000000.25"],
    "dates as text": ["20231114", "20231115", "20231114", "20231116"],
    "iso": ["2023-11-14", "2023-11-14T10:00:00Z", "2023-11-14 10:00:00.5+01:00", "2023-11-15"],
    "moments": pl.Series([SECOND * 10**6, SECOND * 10**6 + 1, 5, 6]).cast(pl.Datetime("us")),
    "moments in ms": pl.Series([SECOND * 1000, 2, 5, 6]).cast(pl.Datetime("ms", "UTC")),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("unit", [None, "ms", "order"])
def test_times_of_two_files(tmp_path: Path, name: str, unit: str | None) -> None:
    frame = pl.DataFrame({"user": ["a", "b", "a", "b"], "item": ["x", "y", "y", "x"], "time": COLUMNS[name]})
    if unit is not None and not frame["time"].dtype.is_integer():
        return
    frame.write_parquet(tmp_path / "whole.parquet")
    frame[:2].write_parquet(tmp_path / "1.parquet")
    frame[2:].write_parquet(tmp_path / "2.parquet")
    log = pack([tmp_path / "1.parquet", tmp_path / "2.parquet"], tmp_path / "packed", time_unit=unit)
    memory = Interactions.read(tmp_path / "whole.parquet", time_unit=unit)
    assert memory.time is not None
    assert log.time is not None
    assert np.array_equal(log.time, memory.time)
    assert log == memory


@pytest.mark.parametrize("user", [[7, 100, 7, 2**40], [-1, 3, 3, 1], [0, 1, 2, 3], [1.0, 2.0, 10.0, 1.0]])
def test_ids_that_are_numbers(tmp_path: Path, user: list[float]) -> None:
    frame = pl.DataFrame({"user": user, "item": ["10", "9", "9", "08"]})
    frame.write_parquet(tmp_path / "log.parquet")
    log = pack([tmp_path / "log.parquet"], tmp_path / "packed")
    memory = Interactions.read(tmp_path / "log.parquet")
    assert log == memory
    assert log.fingerprint() == memory.fingerprint()
