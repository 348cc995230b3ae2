"""What is written, to the letter. That it reads back is a property (tests/properties)."""

import gzip
from pathlib import Path

import polars as pl
import pytest
import zstandard

from unveil.data.interactions import Interactions
from unveil.data.writers import write
from unveil.errors import UnveilError


def _log(times: tuple[int, int] = (1_000_000_000_000_000, 1_000_000_060_000_000), user: str = "007") -> Interactions:
    frame = pl.DataFrame(
        {
            "user": [user, "b"],
            "item": ["x,y", "z"],
            "time": times,
            "rating": [4.5, 3.0],
            "clicked": [True, False],
            "exposed": [True, True],
            "propensity": [0.25, 1.0],
            "position": [1, 2],
            "randomised": [False, True],
            "step": [0, 5],
        }
    )
    return Interactions.from_frame(frame)


HEADER = "user_id,item_id,timestamp,rating,clicked,exposed,propensity,position,is_rand,step\n"
ROWS = '007,"x,y",1000000000,4.5,1,1,0.25,1,0,0\nb,z,1000000060,3.0,0,1,1.0,2,1,5\n'


def test_csv_to_the_letter(tmp_path: Path) -> None:
    write(_log(), tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text() == HEADER + ROWS
    write(_log(), tmp_path / "log.csv.gz")
    assert gzip.decompress((tmp_path / "log.csv.gz").read_bytes()).decode() == HEADER + ROWS
    write(_log(), tmp_path / "log.csv.zst")
    with zstandard.open(tmp_path / "log.csv.zst", "rt") as file:
        assert file.read() == HEADER + ROWS


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        write(_log(), tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_inter_to_the_letter(tmp_path: Path) -> None:
    write(_log(), tmp_path / "log.inter")
    header, first, *_ = (tmp_path / "log.inter").read_text().splitlines()
    assert header.startswith("user_id:token\titem_id:token\ttimestamp:float\trating:float\tclicked:float")
    assert first == "007\tx,y\t1000000000\t4.5\t1\t1\t0.25\t1\t0\t0"


def test_inter_has_parts_of_seconds_as_numbers(tmp_path: Path) -> None:
    for times, first in (
        ((1_000_000_000_000_001, 0), "1000000000.000001"),
        ((-7, 8), "-0.000007"),
        ((20_240_501_000_000, 20_240_502_000_000), "20240501.000000"),
        ((2**32 * 10**6 - 1, 1 - 2**32 * 10**6), "4294967295.999999"),
    ):
        write(_log(times), tmp_path / "log.inter")
        header, row, *_ = (line.split("\t") for line in (tmp_path / "log.inter").read_text().splitlines())
        assert (header[2], row[2]) == ("timestamp:float", first)
        assert Interactions.read(tmp_path / "log.inter") == _log(times)


def test_inter_keeps_what_no_double_can_hold(tmp_path: Path) -> None:
    log = _log((2**32 * 10**6 + 1, 0))
    write(log, tmp_path / "log.inter")
    assert (tmp_path / "log.inter").read_text().splitlines()[0].split("\t")[2] == "timestamp:token"
    assert Interactions.read(tmp_path / "log.inter") == log


def test_times_that_numbers_would_not_carry_are_written_as_iso(tmp_path: Path) -> None:
    for times, first in (
        ((20_240_501_000_000, 20_240_502_000_000), "1970-08-23T06:21:41.000000Z"),
        ((1_000_000_000_000_001, 0), "2001-09-09T01:46:40.000001Z"),
        ((-7, 8), "1969-12-31T23:59:59.999993Z"),
    ):
        write(_log(times), tmp_path / "log.csv")
        assert f",{first}," in (tmp_path / "log.csv").read_text()
        assert Interactions.read(tmp_path / "log.csv") == _log(times)


def test_times_beyond_the_calendar_go_into_parquet_only(tmp_path: Path) -> None:
    log = _log((2**62, -(2**62)))
    with pytest.raises(UnveilError, match="outside the years 1 to 9999"):
        write(log, tmp_path / "log.csv")
    write(log, tmp_path / "log.parquet")
    assert Interactions.read(tmp_path / "log.parquet") == log


@pytest.mark.parametrize("name", ["log", "log.xlsx", "log.gz", "log.parquet.gz", "log.csv.bz2"])
def test_a_name_that_says_no_format(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="cannot tell the format to write from the name"):
        write(_log(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("user", "name"), [("a\tb", "log.inter"), ("a\nb", "log.inter"), ("a\0b", "log.csv")])
def test_an_id_that_the_format_cannot_carry(user: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="an id has characters that this format cannot carry"):
        write(_log(user=user), tmp_path / name)
    assert not list(tmp_path.iterdir())
    write(_log(user=user), tmp_path / "log.jsonl")
    assert Interactions.read(tmp_path / "log.jsonl") == _log(user=user)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    write(_log(), tmp_path / "log.inter")
    before = (tmp_path / "log.inter").read_bytes()
    with pytest.raises(UnveilError):
        write(_log(user="a\tb"), tmp_path / "log.inter")
    assert (tmp_path / "log.inter").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["log.inter"]
