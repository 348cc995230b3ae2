"""Each format, by a small file made by hand; the format is found by content."""

import gzip
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard

from unveil.data.interactions import Interactions
from unveil.data.readers.base import FORMATS
from unveil.errors import UnveilError

T0, T1, T2 = 978300760, 978302109, 978301968

BY_HAND = {
    "csv": f"user_id,item_id,rating,timestamp\nu1,0104257,4.5,{T0}\nu2,b,3,{T1}\nu1,b,1,{T2}\n",
    "tsv": f"user_id\titem_id\trating\ttimestamp\nu1\t0104257\t4.5\t{T0}\nu2\tb\t3\t{T1}\nu1\tb\t1\t{T2}\n",
    "semicolon": f"user_id;item_id;rating;timestamp\nu1;0104257;4.5;{T0}\nu2;b;3;{T1}\nu1;b;1;{T2}\n",
    "pipe": f"user_id|item_id|rating|timestamp\nu1|0104257|4.5|{T0}\nu2|b|3|{T1}\nu1|b|1|{T2}\n",
    "movielens": f"userId,movieId,rating,timestamp\nu1,0104257,4.5,{T0}\nu2,b,3.0,{T1}\nu1,b,1.0,{T2}\n",
    "movielens-100k": f"u1\t0104257\t4.5\t{T0}\nu2\tb\t3\t{T1}\nu1\tb\t1\t{T2}\n",
    "movielens-1m": f"u1::0104257::4.5::{T0}\nu2::b::3::{T1}\nu1::b::1::{T2}\n",
    "amazon-2023": f"user_id,parent_asin,rating,timestamp\nu1,0104257,4.5,{T0}000\nu2,b,3,{T1}000\nu1,b,1,{T2}000\n",
    "inter": (
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
        f"u1\t0104257\t4.5\t{T0}\nu2\tb\t3\t{T1}.0\nu1\tb\t1\t{T2}\n"
    ),
    "jsonl": (
        f'{{"user_id":"u1","item_id":"0104257","rating":4.5,"timestamp":{T0}}}\n'
        f'{{"timestamp":{T1},"user_id":"u2","item_id":"b","rating":3}}\n'
        f'{{"user_id":"u1","item_id":"b","rating":1,"timestamp":{T2},"note":{{"a":[1]}}}}\n'
    ),
    "amazon jsonl": (
        f'{{"reviewerID":"u1","asin":"0104257","overall":4.5,"unixReviewTime":{T0},"helpful":[0,0]}}\n'
        f'{{"reviewerID":"u2","asin":"b","overall":3,"unixReviewTime":{T1}}}\n'
        f'{{"reviewerID":"u1","asin":"b","overall":1,"unixReviewTime":{T2}}}\n'
    ),
    "amazon 2023 jsonl": (
        f'{{"user_id":"u1","parent_asin":"0104257","asin":"x","rating":4.5,"timestamp":{T0}000}}\n'
        f'{{"user_id":"u2","parent_asin":"b","asin":"y","rating":3,"timestamp":{T1}000}}\n'
        f'{{"user_id":"u1","parent_asin":"b","asin":"z","rating":1,"timestamp":{T2}000}}\n'
    ),
}


def _log(tmp_path: Path, content: str | bytes, name: str = "log", format: str | None = None) -> Interactions:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Interactions.read(path, format)


def _expected() -> Interactions:
    frame = pl.DataFrame(
        {
            "user": ["u1", "u2", "u1"],
            "item": ["0104257", "b", "b"],
            "time": [T0 * 10**6, T1 * 10**6, T2 * 10**6],
            "rating": [4.5, 3, 1],
        }
    )
    return Interactions.from_frame(frame)


@pytest.mark.parametrize("name", BY_HAND)
def test_found_by_content(name: str, tmp_path: Path) -> None:
    assert _log(tmp_path, BY_HAND[name]) == _expected()


@pytest.mark.parametrize("name", BY_HAND)
def test_packed_and_with_windows_line_ends(name: str, tmp_path: Path) -> None:
    content = BY_HAND[name].replace("\n", "\r\n").encode()
    for packed in (content, gzip.compress(content), zstandard.compress(content), b"\n\n" + content + b"\n\n"):
        assert _log(tmp_path, packed) == _expected()


@pytest.mark.parametrize("name", [name for name in BY_HAND if " " not in name])
def test_named(name: str, tmp_path: Path) -> None:
    assert _log(tmp_path, BY_HAND[name], format=name) == _expected()


def test_parquet_plain_and_packed(tmp_path: Path) -> None:
    file = io.BytesIO()
    _expected().to_frame().rename({"user": "uid", "item": "sku", "time": "ts", "rating": "stars"}).write_parquet(file)
    for content in (file.getvalue(), gzip.compress(file.getvalue()), zstandard.compress(file.getvalue())):
        assert _log(tmp_path, content) == _expected()


def test_parquet_ids_that_are_numbers(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": [7, 10], "item_id": [12.0, 3.0], "timestamp": [1.5, 2.25]})
    frame.write_parquet(tmp_path / "log.parquet")
    log = Interactions.read(tmp_path / "log.parquet")
    assert log.to_frame().rows() == [("7", "12", 1_500_000), ("10", "3", 2_250_000)]


def test_a_multi_part_gzip_and_zstd_file_is_read_whole(tmp_path: Path) -> None:
    rows = BY_HAND["csv"].encode().splitlines(keepends=True)
    assert _log(tmp_path, b"".join(map(gzip.compress, rows))) == _expected()
    assert _log(tmp_path, b"".join(map(zstandard.compress, rows))) == _expected()


AMAZON = ("A1YJEY40YUW4SE", "B00I6Q5JUA"), ("A2K8", "0439893577"), ("A1YJEY40YUW4SE", "043989357X")


@pytest.mark.parametrize("item_first", [False, True])
def test_amazon_without_a_header_is_told_by_its_ids(item_first: bool, tmp_path: Path) -> None:
    rows = [(item, user) if item_first else (user, item) for user, item in AMAZON]
    log = _log(tmp_path, "".join(f"{a},{b},5.0,{T0}\n" for a, b in rows))
    assert log.to_frame().select("user", "item").rows() == list(AMAZON)


def test_amazon_files_that_could_be_either_have_to_be_named(tmp_path: Path) -> None:
    content = f"u1,i1,5.0,{T0}\nu2,i2,3.0,{T1}\n"
    with pytest.raises(UnveilError, match="fits several formats: amazon-2014, amazon-2018") as caught:
        _log(tmp_path, content)
    assert "--format amazon-2014 or --format amazon-2018" in str(caught.value)
    assert _log(tmp_path, content, format="amazon-2018").users.ids.to_list() == ["i1", "i2"]


def test_pairs_have_an_order_and_no_time(tmp_path: Path) -> None:
    log = _log(tmp_path, "1 10\n1 9\n2 10\n\n2\t11 \n")
    assert log.time is None
    assert log.to_frame().rows() == [("1", "10"), ("1", "9"), ("2", "10"), ("2", "11")]


def test_sequences_one_a_line(tmp_path: Path) -> None:
    log = _log(tmp_path, "1 5 6 5\n2 6\n3 7 8\n")
    assert log.to_frame().rows() == [("1", "5"), ("1", "6"), ("1", "5"), ("2", "6"), ("3", "7"), ("3", "8")]


def test_a_table_between_spaces_is_not_taken_for_sequences(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="cannot tell the format"):
        _log(tmp_path, f"1 10 5 {T0}\n2 10 4 {T1}\n")


def test_a_table_with_unknown_names_is_not_taken_for_pairs(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="no user column among 'buyer', 'thing'"):
        _log(tmp_path, "buyer\tthing\nb1\tt1\nb2\tt2\n")


def test_kuairand_rows_are_exposures(tmp_path: Path) -> None:
    header = "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_rand,tab\n"
    log = _log(
        tmp_path,
        header
        + "0,9,20220425,0,1650812741436,1,0,0,1\n"
        + "3,9,20220425,0,1650812741437,0,0,1,1\n"
        + "3,8,20220425,0,1650812741438,0,0,1,1\n",
    )
    assert log.time is not None
    assert log.time.tolist() == [1650812741436000, 1650812741437000, 1650812741438000]
    assert log.clicked is not None
    assert log.clicked.tolist() == [True, False, False]
    assert log.exposed is not None
    assert log.exposed.all()
    assert log.randomised is not None
    assert log.randomised.tolist() == [False, True, True]


def test_every_optional_column(tmp_path: Path) -> None:
    header = "uid,iid,ts,stars,click,exposed,pscore,rank,is_rand,step\n"
    log = _log(tmp_path, header + "a,x,5,4,1,true,0.25,3,0,7\nb,y,6,5,0,False,1,1,1,8\n")
    assert {name: column.tolist() for name, column in log.optional().items()} == {
        "time": [5_000_000, 6_000_000],
        "rating": [4, 5],
        "clicked": [True, False],
        "exposed": [True, False],
        "propensity": [0.25, 1],
        "position": [3, 1],
        "randomised": [False, True],
        "step": [7, 8],
    }


def test_quotes_commas_and_line_ends_in_ids(tmp_path: Path) -> None:
    content = 'user_id,item_id\n"a,b","say ""hi""\nthere"\n ünï ,x\n'
    assert _log(tmp_path, content).to_frame().rows() == [("a,b", 'say "hi"\nthere'), (" ünï ", "x")]


def test_numbers_that_turn_up_late_are_read_all_the_same(tmp_path: Path) -> None:
    """The first hundred rows suggest whole numbers; a later one is a fraction."""
    rows = "".join(f"u{n},i{n},{10**9 + n}\n" for n in range(300))
    log = _log(tmp_path, f"user_id,item_id,timestamp\n{rows}u1,i1,1000000300.5\n")
    assert log.time is not None
    assert log.time[-1] == 1_000_000_300_500_000
    assert np.array_equal(log.time[:300], (10**9 + np.arange(300)) * 10**6)


def test_a_folder_with_a_known_file(tmp_path: Path) -> None:
    (tmp_path / "ml-1m").mkdir()
    (tmp_path / "ml-1m" / "movies.dat").write_text("1::A\n")
    (tmp_path / "ml-1m" / "ratings.dat").write_text(BY_HAND["movielens-1m"])
    assert Interactions.read(tmp_path / "ml-1m") == _expected()
    assert Interactions.read(str(tmp_path / "ml-1m")) == _expected()


def test_a_path_with_the_signs_of_a_pattern(tmp_path: Path) -> None:
    for name in ("csv", "jsonl"):
        assert _log(tmp_path, BY_HAND[name], name="log[1]*?.csv") == _expected()
    _expected().to_frame().write_parquet(tmp_path / "log[2].parquet")
    assert Interactions.read(tmp_path / "log[2].parquet") == _expected()


def test_another_encoding(tmp_path: Path) -> None:
    text = "user_id,item_id\ncafé,x\nthé,y\n"
    for encoding in ("latin-1", "utf-16", "utf-8-sig", "cp1252"):
        (tmp_path / "log.csv").write_text(text, encoding)
        log = Interactions.read(tmp_path / "log.csv", encoding=encoding)
        assert log.users.ids.to_list() == ["café", "thé"]
    for marked in (BY_HAND["jsonl"], BY_HAND["movielens-1m"]):
        assert _log(tmp_path, f"\ufeff{marked}") == _expected()
    (tmp_path / "log.csv").write_text(text, "utf-8-sig")
    assert Interactions.read(tmp_path / "log.csv").users.ids.to_list() == ["café", "thé"]


def test_all_formats_are_registered() -> None:
    assert {name for name in BY_HAND if " " not in name} < set(FORMATS)
    assert {"parquet", "pairs", "sequences", "kuairand", "amazon-2014", "amazon-2018"} < set(FORMATS)


@pytest.mark.parametrize("above", ["", "\n", " \n", "\t\r\n \n"])
@pytest.mark.parametrize("below", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("times", [False, True])
def test_blank_lines_around_a_header_are_passed_over(above: str, below: str, times: bool, tmp_path: Path) -> None:
    rows = [("u1", "i1", "7"), ("u2", "i2", "8"), ("u1", "i2", "9")]
    width = 3 if times else 2
    lines = [",".join(row[:width]) for row in [("user_id", "item_id", "timestamp"), *rows]]
    (tmp_path / "log.csv").write_text(above + lines[0] + "\n" + below + "\n".join(lines[1:]) + "\n", newline="")
    log = Interactions.read(tmp_path / "log.csv")
    assert list(log.to_frame().select("user", "item").iter_rows()) == [row[:2] for row in rows]


def test_a_matrix_of_ratings(tmp_path: Path) -> None:
    """As Coat is published: a line a user, a column an item, 0 where nothing was rated; blank lines are no users."""
    rating_UV = np.zeros((3, 12), int)
    rating_UV[0, [2, 11]], rating_UV[2, 0] = (5, 1), 3
    np.savetxt(tmp_path / "train.ascii", rating_UV, fmt="%d ")
    (tmp_path / "train.ascii").write_text("\n" + (tmp_path / "train.ascii").read_text())
    log = Interactions.read(tmp_path / "train.ascii")
    assert log.to_frame().rows() == [("0", "2", 5.0), ("0", "11", 1.0), ("2", "0", 3.0)]
    (tmp_path / "train.ascii").write_text(("0 " * 12 + "\n") * 2 + "0 " * 11)
    with pytest.raises(UnveilError, match="row 3: rows of unequal length"):
        Interactions.read(tmp_path / "train.ascii")  # no sequences of unequal length
    (tmp_path / "train.ascii").write_text(("0 " * 12 + "\n") * 2)
    with pytest.raises(UnveilError, match="no rows"):
        Interactions.read(tmp_path / "train.ascii")
    (tmp_path / "train.ascii").write_text("0 1 x\n")
    with pytest.raises(UnveilError, match="not a number"):
        Interactions.read(tmp_path / "train.ascii", "matrix")
