"""Parquet columns of any type in any role: a clear error or a valid log."""

from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from unveil.data.interactions import Interactions
from unveil.data.readers.table import ROLES, canonical
from unveil.errors import UnveilError

COLUMNS = [
    pl.Series([1, 2, None]),
    pl.Series([2**64 - 1, 0, 1], dtype=pl.UInt64),
    pl.Series([-(2**63), 2**63 - 1, 0]),
    pl.Series([1, 0, 1], dtype=pl.Int8),
    pl.Series([10**30, -(10**30), 0], dtype=pl.Int128),
    pl.Series([0.5, float("nan"), float("inf")]),
    pl.Series([1e300, -1e300, 1.0]),
    pl.Series([1.0, 0.0, 1.0], dtype=pl.Float32),
    pl.Series([True, False, True]),
    pl.Series(["1", "x", ""]),
    pl.Series(["a", "b", "c"], dtype=pl.Categorical),
    pl.Series(["a", "b", "a"], dtype=pl.Enum(["a", "b"])),
    pl.Series([b"a", b"\xff", b""]),
    pl.Series([date(2024, 5, 1), date(1, 1, 1), date(9999, 12, 31)]),
    pl.Series([datetime(2024, 5, 1), datetime(1, 1, 1), None]),
    pl.Series([datetime(2024, 5, 1), datetime(1970, 1, 1), datetime(2262, 1, 1)], dtype=pl.Datetime("ns", "UTC")),
    pl.Series([time(1, 2), time(3), time(4)]),
    pl.Series([timedelta(1), timedelta(2), timedelta(3)]),
    pl.Series([Decimal("1.50"), Decimal("2"), Decimal("0.1")]),
    pl.Series([[1], [2], []]),
    pl.Series([{"a": 1}, {"a": 2}, {"a": 3}]),
    pl.Series([None, None, None]),
]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.dtype))
def test_a_column_of_any_type(role: str, column: pl.Series, tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": ["a", "b", "c"], "item_id": ["x", "y", "z"]})
    path = tmp_path / "log.parquet"
    frame.with_columns(column.alias(canonical(role))).write_parquet(path)
    for unit in (None, "s", "ns", "iso", "order"):
        with suppress(UnveilError):
            assert len(Interactions.read(path, time_unit=unit)) == 3
