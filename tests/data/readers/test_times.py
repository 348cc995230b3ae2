"""Times of every kind come out as the same µs."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.data.interactions import Interactions
from unveil.data.readers.table import Table, times
from unveil.errors import UnveilError

MOMENT = 1_714_566_600_000_000  # 2024-05-01T12:30:00Z in µs


def _times(values: list[object], unit: str | None = None, dtype: pl.DataType | None = None) -> list[int]:
    frame = pl.DataFrame({"time": pl.Series(values, dtype=dtype)})
    return times(Table("log", frame, {"time": "ts"}, (2).__add__), unit).to_list()


@pytest.mark.parametrize("value", [1_714_566_600, 1_714_566_600_000, MOMENT, MOMENT * 1000])
@pytest.mark.parametrize("as_text", [False, True])
def test_the_unit_is_judged_by_magnitude(value: int, as_text: bool) -> None:
    assert _times([str(value) if as_text else value]) == [MOMENT]


def test_the_largest_value_judges_for_the_whole_column() -> None:
    assert _times([200_000_000_000, 1_714_566_600_000]) == [200_000_000_000_000, MOMENT]
    assert _times([99_999_999_999]) == [99_999_999_999_000_000]
    assert _times([100_000_000_000]) == [100_000_000_000_000]


@pytest.mark.parametrize("odd", [5, -1_714_566_600, 1_714_566_600])
def test_units_are_not_mixed(odd: int) -> None:
    column: list[object] = [1_714_566_600_000, odd, 1_714_566_600_000]
    with pytest.raises(UnveilError, match=rf"row 3, column ts: a time too small for ms.*found {odd}"):
        _times(column)
    assert _times(column, "ms") == [MOMENT, odd * 1_000, MOMENT]


@pytest.mark.parametrize(("unit", "expected"), [("s", 7_000_000), ("ms", 7_000), ("us", 7), ("ns", 0), ("order", 7)])
def test_a_named_unit_wins(unit: str, expected: int) -> None:
    assert _times([7], unit) == _times(["7"], unit) == _times([7.0], unit) == [expected]


def test_negative_times_and_fractions() -> None:
    assert _times([-1]) == [-1_000_000]
    assert _times([1_714_566_600.25]) == [MOMENT + 250_000]
    assert _times(["1714566600.123456"]) == [MOMENT + 123_456]


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01T12:30:00Z",
        "2024-05-01 12:30:00",
        "2024-05-01T12:30",
        "20240501T123000Z",
        "2024-05-01T14:30:00+02:00",
        "2024-05-01T14:30:00+0200",
        "2024-05-01 14:30:00.000+02",
        "2024-05-01T07:00:00,000000000-05:30",
        " 2024-05-01T12:30:00z ",
    ],
)
def test_iso_8601(text: str) -> None:
    assert _times([text]) == _times([text], "iso") == [MOMENT]


def test_dates() -> None:
    day = MOMENT // 86_400_000_000 * 86_400_000_000
    assert _times(["2024-05-01"]) == _times(["20240501"]) == _times([20240501]) == [day]
    assert _times([20240501], "s") == [20_240_501_000_000]
    assert _times([20240501, 20240532]) == [20_240_501_000_000, 20_240_532_000_000]


def test_fractions_below_a_microsecond_are_cut() -> None:
    assert _times(["2024-05-01T12:30:00.1234567Z"]) == [MOMENT + 123_456]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_columns_of_moments(unit: str) -> None:
    moment = datetime(2024, 5, 1, 12, 30)
    assert _times([moment], dtype=pl.Datetime(unit)) == [MOMENT]  # type: ignore[arg-type]
    aware = pl.Series([moment]).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone("Asia/Tokyo")
    assert times(Table("log", pl.DataFrame({"time": aware}), {"time": "ts"}), None).to_list() == [MOMENT]
    assert _times([moment.date()]) == [MOMENT // 86_400_000_000 * 86_400_000_000]


@pytest.mark.parametrize(
    ("values", "unit", "row", "found"),
    [
        (["2024-05-01", "soon"], None, 3, "soon"),
        ([10**9, None], None, 3, None),
        ([1.0, float("nan")], None, 3, "nan"),
        (["7", "7.5"], "order", 3, "7.5"),
        ([10**13], "s", 2, "10000000000000"),
        (["5"], "iso", 2, "5"),
        (["2024-05-01T12:30:00Z"], "s", 2, "2024"),
        (["2024-05-01", "2024-02-30"], None, 3, "2024-02-30"),
        (["2024-05-01T24:00:00"], None, 2, "24:00"),
        (["1000000000", "1000000001", "2024-05-01"], None, 4, "2024-05-01"),
    ],
)
def test_the_first_value_that_is_no_time(values: list[object], unit: str | None, row: int, found: str | None) -> None:
    with pytest.raises(UnveilError, match=f"log, row {row}, column ts: ") as caught:
        _times(values, unit)
    assert (found or "the cell is empty") in str(caught.value)


@given(
    moment=st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    minutes=st.integers(-23 * 60 - 59, 23 * 60 + 59),
    separator=st.sampled_from("T "),
)
def test_any_moment_in_any_zone(moment: datetime, minutes: int, separator: str) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    assert _times([aware.isoformat(separator)]) == [since // timedelta(microseconds=1)]


def test_no_time_column_leaves_an_order_only(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_id,item_id\nu1,a\nu2,b\n")
    assert Interactions.read(tmp_path / "log.csv").time is None


def test_nanoseconds_keep_every_digit(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_id,item_id,timestamp\nu1,a,1714566600123456789\nu2,b,1714566600123457999\n")
    log = Interactions.read(tmp_path / "log.csv")
    assert log.time is not None
    assert log.time.tolist() == [MOMENT + 123_456, MOMENT + 123_457]


def test_unsigned_numbers_beyond_the_signed_ones() -> None:
    assert _times([2**63 + 5], dtype=pl.UInt64()) == [pytest.approx(2**63 / 1000, abs=1)]
    with pytest.raises(UnveilError, match="too large a time"):
        _times([2**63 + 5], "us", dtype=pl.UInt64())
