"""What can be wrong with a file: each gives one clear message that names the file, the row and what to do."""

import csv
import gzip
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard

from unveil.data.interactions import Interactions
from unveil.data.readers.base import FORMATS
from unveil.data.readers.content import Content
from unveil.data.readers.delimited import WithHeader
from unveil.data.readers.table import ReadOptions, Table
from unveil.errors import UnveilError

HEADER = "user_id,item_id,rating,timestamp\n"
ROWS = "u1,a,4,1000000000\nu2,b,5,1000000001\nu1,b,3,1000000002\n"

MessageOf = Callable[..., str]


@pytest.fixture
def message_of(tmp_path: Path) -> MessageOf:
    """Write a file, read it, and give the message of the error."""

    def message(content: str | bytes, **options: object) -> str:
        path = tmp_path / "log.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(UnveilError) as caught:
            Interactions.read(path, **options)  # type: ignore[arg-type]
        said = str(caught.value)
        assert "\n" not in said
        assert str(path) in said
        return said.replace(f"{tmp_path}/", "")

    return message


def test_missing_file(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").touch()
    with pytest.raises(UnveilError, match=r"rating\.csv: no such file\. Did you mean ratings\.csv\?"):
        Interactions.read(tmp_path / "rating.csv")
    with pytest.raises(UnveilError, match="its folder does not exist"):
        Interactions.read(tmp_path / "nowhere" / "log.csv")
    with pytest.raises(UnveilError, match="no such file"):
        Interactions.read("no-such-data-set")


def test_a_known_data_set_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNVEIL_DATA", str(tmp_path / "empty"))
    with pytest.raises(UnveilError, match="unveil data fetch ml-1m"):
        Interactions.read("ml-1m")


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="a folder with no known log in it: it is empty"):
        Interactions.read(tmp_path)
    (tmp_path / "ratings.csv").touch()
    (tmp_path / "ratings.dat").touch()
    with pytest.raises(UnveilError, match=r"several logs in it: ratings\.dat, ratings\.csv"):
        Interactions.read(tmp_path)


def test_a_name_that_cannot_be_a_path() -> None:
    for name in ("a\0b", "x" * 5000):
        with pytest.raises(UnveilError):
            Interactions.read(name)


def test_something_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnveilError, match="not a file"):
        Interactions.read(tmp_path / "pipe")


@pytest.fixture
def without_rights(tmp_path: Path) -> Iterator[Path]:
    """A file that may not be read, also where the tests run as root."""
    path = tmp_path / "secret.csv"
    path.write_text(HEADER + ROWS)
    path.chmod(0)
    uid = os.geteuid()
    if uid == 0:
        os.seteuid(65534)
    yield path
    os.seteuid(uid)


def test_a_file_that_may_not_be_read(without_rights: Path) -> None:
    with pytest.raises(UnveilError, match=r"secret\.csv: (cannot read: )?(?i:permission denied)"):
        Interactions.read(without_rights)


@pytest.mark.parametrize("content", ["", "\n\n  \n", "\ufeff"])
def test_empty_file(content: str, message_of: MessageOf) -> None:
    assert message_of(content) == "log.csv: the file is empty: expected a log."


def test_header_only(message_of: MessageOf) -> None:
    assert message_of(HEADER).startswith("log.csv: no rows: expected at least one event.")


def test_wrong_delimiter(message_of: MessageOf) -> None:
    content = (HEADER + ROWS).replace(",", ";")
    assert message_of(content, format="csv").startswith("log.csv: only one column found: found 'user_id;item_id;rating")
    assert message_of(content.replace(";", "~")).startswith(
        "log.csv: cannot tell the format: found 'user_id~item_id~rating"
    )


def test_missing_column_lists_what_there_is(message_of: MessageOf) -> None:
    said = message_of("buyer_id,item_id,ts\n1,2,3\n")
    assert "no user column among 'buyer_id', 'item_id', 'ts'" in said
    assert "Perhaps --user-col 'buyer_id'?" in said
    said = message_of(HEADER + ROWS, columns={"user": "usr_id"})
    assert "no such column: found 'usr_id', expected one of 'user_id', 'item_id'" in said
    assert "Did you mean 'user_id'?" in said


def test_unknown_options_are_named(message_of: MessageOf, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(HEADER + ROWS)
    for options, problem in (
        ({"format": "cvs"}, "unknown format: found 'cvs'.*Did you mean 'csv"),
        ({"time_unit": "days"}, "unknown time unit: found 'days', expected one of s, ms"),
        ({"columns": {"who": "user_id"}}, "no such column role: found 'who'"),
        ({"encoding": "klingon"}, "unknown encoding: found 'klingon'"),
        ({"encoding": "hex"}, "cannot decode"),
        ({"query": "SELECT 1"}, "--query is for a database"),
    ):
        with pytest.raises(UnveilError, match=problem):
            Interactions.read(tmp_path / "log.csv", **options)


@pytest.mark.parametrize("value", ["yesterday", "2024-13-01", "1e", "--", "2024-02-30T10:00:00"])
def test_unparsable_time_names_the_row(value: str, message_of: MessageOf) -> None:
    said = message_of(f"{HEADER}{ROWS}u2,a,4,{value}\n")
    assert said.startswith(
        f"log.csv, row 5, column timestamp: not a time: found {value!r}, expected seconds, ms, µs or"
    )
    assert "--time-unit" in said


def test_rows_are_numbered_as_an_editor_does(message_of: MessageOf) -> None:
    """A blank line first, a quoted id over two lines, another blank line: the bad row is on line 8."""
    said = message_of(f'\n{HEADER}u1,a,4,1\n"u\n2",b,5,2\n\n\nu3,b,x,3\n')
    assert said.startswith("log.csv, row 8, column rating: not a number: found 'x'")


@pytest.mark.parametrize("value", ["NaN", "inf", "-inf", "nan"])
def test_values_that_are_not_finite(value: str, message_of: MessageOf) -> None:
    assert "row 5, column rating: not a finite number" in message_of(f"{HEADER}{ROWS}u2,a,{value},1000000003\n")
    assert "row 5, column timestamp: not a time" in message_of(f"{HEADER}{ROWS}u2,a,3,{value}\n")
    said = message_of(f"user_id,item_id,propensity\nu1,a,1\nu2,b,{value}\n")
    assert "row 3, column propensity: not a finite number" in said
    assert "expected a probability above 0 and at most 1" in said


def test_a_rating_beyond_single_precision(message_of: MessageOf) -> None:
    assert "row 3, column rating: too large a rating" in message_of("user_id,item_id,rating\nu1,a,1\nu2,b,1e300\n")


def test_nan_in_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": ["a", "b"], "item_id": ["x", "y"], "rating": [1.0, float("nan")]})
    frame.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(UnveilError, match="row 2, column rating: not a finite number"):
        Interactions.read(tmp_path / "log.parquet")


@pytest.mark.parametrize("value", ["0", "1.1", "-0.5"])
def test_propensities_lie_between_0_and_1(value: str, message_of: MessageOf) -> None:
    assert "row 3, column pscore: not a propensity" in message_of(f"user_id,item_id,pscore\nu1,a,1\nu2,b,{value}\n")


def test_yes_or_no(message_of: MessageOf) -> None:
    assert "row 3, column click: not a yes or no: found 2" in message_of("user_id,item_id,click\nu1,a,1\nu2,b,2\n")
    assert "row 3, column click: not a yes or no: found 'maybe'" in message_of(
        "user_id,item_id,click\nu1,a,1\nu2,b,maybe\n"
    )


def test_places_are_whole_numbers(message_of: MessageOf) -> None:
    assert "row 2, column position: not a position: found 1.5" in message_of(
        "user_id,item_id,position\nu1,a,1.5\nu2,b,2\n"
    )
    assert "row 3, column step: not a step: found -1" in message_of("user_id,item_id,step\nu1,a,1\nu2,b,-1\n")


@pytest.mark.parametrize(("row", "role"), [(",b", "user"), ("u3,", "item"), ('"",b', "user"), ('u3,""', "item")])
def test_no_user_or_no_item(row: str, role: str, message_of: MessageOf) -> None:
    said = message_of(f"user_id,item_id,rating\nu1,a,1\n{row},2\nu2,b,3\n")
    assert said.startswith(f"log.csv, row 3, column {role}_id: no {role}, the cell is empty: expected an id")


def test_no_rating_in_one_row(message_of: MessageOf) -> None:
    assert "row 3, column rating: not a number" in message_of("user_id,item_id,rating\nu1,a,1\nu2,b,\n")


def test_null_in_jsonl(message_of: MessageOf) -> None:
    said = message_of('{"user_id":"a","item_id":"x"}\n\n{"user_id":null,"item_id":"y"}\n')
    assert said.startswith("log.csv, row 3, column user_id: no user")
    said = message_of('{"user_id":"a","item_id":"x"}\n{"item_id":"y"}\n')
    assert said.startswith("log.csv, row 2, column user_id: no user")


def test_jsonl_that_is_none(message_of: MessageOf) -> None:
    good = '{"user_id":"a","item_id":"x"}\n'
    assert message_of(f'{good}{{"user_id":"b"\n').startswith("log.csv, row 2: not a JSON object")
    assert message_of(f"{good}[1,2]\n").startswith("log.csv, row 2: not a JSON object: found '[1,2]'")
    assert "column item_id: not a plain value" in message_of(f'{good}{{"user_id":"b","item_id":["y"]}}\n')


@pytest.mark.parametrize(("row", "count"), [("u2,b,5", 3), ("u2,b,5,1,9", 5), ("u2,b", 2), ("u2", 1)])
def test_a_row_of_the_wrong_length(row: str, count: int, message_of: MessageOf) -> None:
    for place in range(3):
        lines = ROWS.splitlines()
        lines.insert(place, row)
        said = message_of(HEADER + "\n".join(lines) + "\n")
        assert said.startswith(f"log.csv, row {place + 2}: a row of {count} fields: expected 4, as in the header")


def test_a_short_row_shows_even_where_what_is_missing_is_not_needed(message_of: MessageOf) -> None:
    assert "row 3: a row of 2 fields" in message_of("user_id,item_id,note\nu1,a,x\nu2,b\n")


def test_a_long_row_shows_even_where_what_is_too_much_is_not_needed(message_of: MessageOf) -> None:
    assert "row 3: a row of 4 fields" in message_of("user_id,item_id,note\nu1,a,x\nu2,b,y,z\n")


def test_an_empty_field_that_is_not_needed_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_id,item_id,note\nu1,a,\nu2,b,x\n")
    assert len(Interactions.read(tmp_path / "log.csv")) == 2


def test_wrong_lines_of_other_formats(message_of: MessageOf) -> None:
    assert message_of("1 2\n1 2 3\n", format="pairs").startswith("log.csv, row 2: not a pair: found '1 2 3'")
    assert message_of("1 2\n3\n", format="sequences").startswith("log.csv, row 2: a user without items: found '3'")
    assert message_of("1::2::3::4\n1::2::3\n", format="movielens-1m").startswith("log.csv, row 2: a row of 5 fields")


def test_columns_of_formats_without_names(message_of: MessageOf, tmp_path: Path) -> None:
    assert "this format has no named columns. Leave --time-col out" in message_of("1 2\n2 3\n", columns={"time": "ts"})
    (tmp_path / "u.data").write_text("1\t2\t5\t1000000000\n2\t2\tx\t1000000000\n2\t3\t5\t1000000000\n")
    log = Interactions.read(tmp_path / "u.data", "movielens-100k", columns={"rating": "none"})
    assert list(log.optional()) == ["time"]
    with pytest.raises(UnveilError, match=r"row 2, column rating: not a number.*--rating-col none"):
        Interactions.read(tmp_path / "u.data", "movielens-100k")


def test_an_open_quote(message_of: MessageOf) -> None:
    assert message_of('user_id,item_id\n"u1,a\nu2,b\n').startswith("log.csv")


def test_two_columns_for_one_role(message_of: MessageOf) -> None:
    said = message_of("uid,reviewerID,item_id\n1,2,3\n")
    assert said == "log.csv: several columns could be the user: 'uid', 'reviewerID'. Say which with --user-col."


@pytest.mark.parametrize("role", ["user", "item"])
def test_one_user_or_one_item(role: str, message_of: MessageOf) -> None:
    other = {"user": "item", "item": "user"}[role]
    assert message_of(f"{role}_id,{other}_id\nx,1\nx,2\n").startswith(f"log.csv: one {role} only ('x'): nothing to")


def test_wrong_encoding(message_of: MessageOf) -> None:
    said = message_of("user_id,item_id\nu1,a\ncafé,b\n".encode("latin-1"))
    assert said.startswith("log.csv, row 3, byte 24: wrong encoding: byte 0xe9 is not utf-8. Pass --encoding latin-1")
    far = "user_id,item_id\n" + "u1,a\n" * 20_000
    assert "row 20002, byte 100019: wrong encoding" in message_of(f"{far}café,b\n".encode("latin-1"))
    assert "Pass --encoding utf-16" in message_of("user_id,item_id\nu1,a\n".encode("utf-16"))
    assert "is not utf-16" in message_of(b"user_id,item_id\nu1,a\nu2,b\xd8\xd8\n"[:-1], encoding="utf-16-le")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x7fELF\0\0\1", "a binary file, not a log"),
        (b"PK\x03\x04\0\0", "this is a zip archive, not a log. Extract it first"),
        (b"SQLite format 3\0abc", "this is a SQLite database"),
        (b"BZh91AY", "this is a bzip2 file"),
    ],
)
def test_binary_files(content: bytes, problem: str, message_of: MessageOf) -> None:
    assert problem in message_of(content)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_files_that_are_cut_off(pack: Callable[[bytes], bytes], message_of: MessageOf) -> None:
    packed = pack((HEADER + ROWS * 100).encode())
    for length in (5, len(packed) // 2, len(packed) - 1):
        assert "the packed file is cut off or damaged" in message_of(packed[:length])
    assert "the packed file is cut off or damaged" in message_of(packed + packed[:-3])


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, lambda content: zstandard.compress(content) * 60])
def test_packed_files_that_open_without_end(pack: Callable[[bytes], bytes], message_of: MessageOf) -> None:
    packed = pack(HEADER.encode() + b"u1,a,4,1000000000\n" * 5_000_000)  # 90 MB
    tracemalloc.start()
    said = message_of(packed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert said.startswith("log.csv: too much to unpack: found 'more than ")
    assert "expected at most 100 times its size. If the file is sound, unpack it yourself" in said
    assert peak < 150e6


@pytest.mark.parametrize("step", [1_000_000, 10**9])
def test_a_step_that_no_table_has_room_for(step: int, message_of: MessageOf) -> None:
    said = message_of(f"user_id,item_id,step\nu1,a,0\nu2,b,{step}\nu1,b,1\n")
    assert said.startswith(f"log.csv, row 3, column step: not a step: found {step}, expected a whole number")
    assert "--time-unit order --step-col none" in said


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({"user_id": ["a", "b"], "item_id": ["x", "y"]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UnveilError, match=r"log\.parquet: not a whole Parquet file"):
        Interactions.read(path)
    path.write_text(HEADER + ROWS)
    with pytest.raises(UnveilError, match="not a whole Parquet file"):
        Interactions.read(path, "parquet")


def test_columns_of_the_wrong_type(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    frame = pl.DataFrame({"user_id": [[1], [2]], "item_id": ["x", "y"]})
    frame.write_parquet(path)
    with pytest.raises(UnveilError, match="column user_id: not an id column"):
        Interactions.read(path)
    pl.DataFrame({"user_id": [1.5, 2], "item_id": ["x", "y"]}).write_parquet(path)
    with pytest.raises(UnveilError, match=r"row 1, column user_id: not an id: found 1\.5"):
        Interactions.read(path)
    for column, problem in (("timestamp", "not a time column"), ("rating", "not a column of numbers")):
        pl.DataFrame({"user_id": [1, 2], "item_id": ["x", "y"], column: [b"a", b"b"]}).write_parquet(path)
        with pytest.raises(UnveilError, match=f"column {column}: {problem}"):
            Interactions.read(path)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that, while it reads, makes the file longer: as another process might."""

    class Growing(WithHeader):
        name = "growing"

        def read(self, content: Content, options: ReadOptions) -> Table:
            with content.path.open("a") as file:
                file.write("u3,c,1,1000000009\n")
            return super().read(content, options)

    path = tmp_path / "log.csv"
    path.write_text(HEADER + ROWS)
    monkeypatch.setitem(FORMATS._found, "growing", Growing)
    with pytest.raises(UnveilError, match=r"log\.csv: the file changed while it was read\. .*run again"):
        Interactions.read(path, "growing")


def test_lines_that_end_in_cr_alone(message_of: MessageOf) -> None:
    said = message_of((HEADER + ROWS).replace("\n", "\r"))
    assert said.startswith("log.csv: the lines end in CR alone: expected LF or CR LF.")
    assert "tr '\\r' '\\n' < log.csv > new-log.csv" in said


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", [None, "jsonl"])
def test_a_list_instead_of_json_lines(indent: int | None, name: str | None, message_of: MessageOf) -> None:
    content = json.dumps([{"user_id": "a", "item_id": "x"}, {"user_id": "b", "item_id": "y"}], indent=indent)
    said = message_of(content, format=name)
    assert said.startswith("log.csv: one JSON list, not JSON lines: expected one object a line. Take it apart: jq")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(encoding: str, message_of: MessageOf, tmp_path: Path) -> None:
    said = message_of((HEADER + ROWS).encode(encoding))
    assert said == f"log.csv: wrong encoding: the text is in UTF-16. Pass --encoding {encoding}."
    assert len(Interactions.read(tmp_path / "log.csv", encoding=encoding)) == 3


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_values_that_json_does_not_have(value: str, message_of: MessageOf) -> None:
    good = '{"user_id":"a","item_id":"x","timestamp":1}\n'
    said = message_of(f'{good}\n{{"user_id":"b","item_id":"y","timestamp":{value}}}\n')
    assert said.startswith(f"log.csv, row 3: {value} is no value of JSON: found '{{")


@pytest.mark.parametrize("rows", ["u1,a,1000000000\nu2,b,1000000001\n", "1,2\n2,3\n", "u1,a,4.5,1000000000,x\n" * 2])
def test_a_file_without_a_header(rows: str, message_of: MessageOf) -> None:
    said = message_of(rows)
    assert said.startswith("log.csv: the first line is a row, not a header: found '")
    assert "such as user_id,item_id,timestamp, or name another --format" in said


def test_columns_of_one_name(message_of: MessageOf) -> None:
    said = message_of("user_id,item_id,item_id\nu1,a,b\nu2,b,c\n")
    assert said == "log.csv: several columns have the same name: found 'item_id'. Rename all but one of them."
    assert "several columns have the same name" in message_of("user_id,item_id,ts,ts\nu1,a,1,2\nu2,b,1,2\n")


def test_a_bad_row_after_a_very_long_id(message_of: MessageOf) -> None:
    limit = csv.field_size_limit()
    long = f"{HEADER}u1,{'x' * 140_000},4,1000000000\n"
    assert message_of(f"{long}u2,b,5\n").startswith("log.csv, row 3: a row of 3 fields")
    assert message_of(f"{long}u2,b,5,soon\n").startswith("log.csv, row 3, column timestamp: not a time: found 'soon'")
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("blank", ["", " ", "NaN"])
def test_only_what_was_left_may_lack_a_rating(message_of: MessageOf, tmp_path: Path, blank: str) -> None:
    header = "user_id,item_id,rating,clicked\n"
    shown = f"u1,a,4,1\nu2,b,5,1\nu1,b,{blank},0\nu1,c,3,1\n"
    (tmp_path / "shown.csv").write_text(header + shown)
    log = Interactions.read(tmp_path / "shown.csv")
    assert log.rating is not None
    np.testing.assert_array_equal(log.rating, [4, 5, np.nan, 3])
    said = message_of(header + shown + f"u2,c,{blank},1\n")
    assert said.startswith("log.csv, row 6, column rating: not a ")
    assert "not a number" in message_of(header + shown + "u2,c,good,0\n"), "a rating that is there is a number"
    assert "column rating" in message_of(f"user_id,item_id,rating\nu1,a,4\nu2,b,{blank}\n"), "all of these were clicked"


def test_a_rating_column_of_nothing_is_empty(tmp_path: Path) -> None:
    rows = {"user_id": ["a", "b", "a"], "item_id": ["x", "y", "y"], "clicked": [0, 0, 0], "rating": [None] * 3}
    pl.DataFrame(rows).write_parquet(tmp_path / "left.parquet")
    log = Interactions.read(tmp_path / "left.parquet")
    assert log.rating is not None
    assert np.isnan(log.rating).all()
    pl.DataFrame({**rows, "clicked": [0, 1, 0]}).write_parquet(tmp_path / "clicked.parquet")
    with pytest.raises(UnveilError, match="column rating: not a number, the cell is empty"):
        Interactions.read(tmp_path / "clicked.parquet")


def test_a_header_spelt_nearly_as_a_known_name_leaves_no_column_out(message_of: MessageOf, tmp_path: Path) -> None:
    said = message_of(f"user_id,item_id,rating,timestbmp\n{ROWS}")
    assert said.startswith("log.csv: a column spelt nearly as 'timestamp': found 'timestbmp'. Correct the header")
    assert said.endswith("say --time-col timestbmp or --time-col none.")
    assert "spelt nearly as 'isclick'" in message_of("user_id,video_id,time_ms,is_clicj\n1,2,1600000000000,1\n")
    assert "--user-col usr_id" in message_of("usr_id,session_id,item_id\nu,s,i\n")
    (tmp_path / "log.csv").write_text(f"user_id,item_id,ratings,timestamp\n{ROWS}")
    assert Interactions.read(tmp_path / "log.csv", columns={"rating": "ratings"}).rating is not None
    assert Interactions.read(tmp_path / "log.csv", columns={"rating": "none"}).rating is None


def test_a_quote_that_would_join_rows(message_of: MessageOf) -> None:
    said = message_of('user_id,item_id\n"u1","a"\nu2,"b\nu1,"c"\nu3,d\n')
    assert said.startswith("log.csv, row 3: unreadable row")
    assert message_of('user_id,item_id\n"u1"x,a\nu2,b\n').startswith("log.csv, row 2: unreadable row")
