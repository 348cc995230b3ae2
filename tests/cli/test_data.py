import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Command
from tests.run_folders import Finished, options, small_frame
from unveil.data.interactions import Interactions


def test_describe_shows_the_log_and_what_filters_leave(unveil: Command, finished: Finished) -> None:
    plain = json.loads(unveil("data", "describe", finished.log, "--json").out)
    assert plain.keys() == {"as it is"}
    assert (plain["as it is"]["users"], plain["as it is"]["items"]) == (40, 30)
    filtered = json.loads(unveil("data", "describe", finished.log, "--json", "--min-user", 6).out)
    assert (filtered["as it is"]["users"], filtered["after filters"]["users"]) == (40, 30)
    table = unveil("data", "describe", finished.log, "--min-user", 6).out
    assert "as it is" in table
    assert "after filters" in table
    assert "not recorded" not in table
    assert "Ties:" not in table


def test_describe_gives_the_rule_of_ties_where_there_are_some(unveil: Command, tmp_path: Path) -> None:
    small_frame().with_columns(timestamp=pl.lit(1_600_000_000)).write_csv(tmp_path / "log.csv")
    assert "Ties: events of one user at the same time stay in file order" in unveil(
        "data", "describe", tmp_path / "log.csv"
    ).out.replace("\n", " ")


def test_a_log_in_which_nothing_was_taken_is_refused_for_that(unveil: Command, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    small_frame().with_columns(clicked=pl.lit(0)).write_csv(path)
    for words in (("data", "describe"), ("train", "-o", tmp_path / "run")):
        told = unveil(*words, path).failure()
        assert f"{path}: nothing in the log was clicked: found 'all {len(small_frame())} rows are" in told
    assert not (tmp_path / "run").exists()


def test_convert_writes_what_the_filters_leave(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    done = unveil("data", "convert", finished.log, "-o", tmp_path / "log.parquet", "--min-user", 6)
    assert done.code == 0, done.err
    figures = f"{len(Interactions.read(tmp_path / 'log.parquet'))} events, 30 users, 30 items"
    assert done.out == f"{tmp_path / 'log.parquet'}: {figures}; columns user_id, item_id, timestamp\n"
    kept = small_frame().filter(pl.len().over("user_id") >= 6)
    log = Interactions.read(tmp_path / "log.parquet")
    assert log.to_frame()["user"].to_list() == kept["user_id"].to_list()
    assert log.to_frame()["item"].to_list() == kept["item_id"].to_list()


def test_every_way_of_reading_can_be_named(unveil: Command, tmp_path: Path) -> None:
    frame = small_frame().rename({"user_id": "wer", "item_id": "was", "timestamp": "wann"})
    (tmp_path / "log.csv").write_bytes(frame.write_csv().replace("\n0001,", "\nü1,").encode("latin-1"))
    columns = ["--user-col", "wer", "--item-col", "was", "--time-col", "wann"]
    done = unveil(
        "data", "describe", tmp_path / "log.csv", *columns, "--encoding", "latin-1", "--time-unit", "s", "--json"
    )
    assert json.loads(done.out)["as it is"]["users"] == 40
    assert "nothing.csv" in unveil("data", "describe", tmp_path / "nothing.csv").failure()
    assert "unknown time unit" in unveil("data", "describe", tmp_path / "log.csv", "--time-unit", "h").failure()


def test_the_version_and_the_list_of_commands(unveil: Command) -> None:
    assert unveil("--version").out.startswith("unveil 0.")
    words = unveil("--help").out
    assert all(command in words for command in ("train", "evaluate", "compare", "recommend", "data", "world", "demo"))
    wrong = unveil("trian")
    assert wrong.code == 2
    assert "Traceback" not in wrong.err


def test_convert_buries_nothing_and_writes_no_empty_log(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    output = tmp_path / "log.csv"
    assert "no events" in unveil("data", "convert", finished.log, "-o", output, "--min-user", 999).failure()
    assert not output.exists()
    output.write_text("precious")
    assert "--overwrite" in unveil("data", "convert", finished.log, "-o", output).failure()
    assert output.read_text() == "precious"
    assert unveil("data", "convert", finished.log, "-o", output, "--overwrite").code == 0
    assert len(Interactions.read(output)) == len(small_frame())


@pytest.fixture
def packed(unveil: Command, tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    for nth in range(3):
        small_frame()[100 * nth : 100 * (nth + 1) if nth < 2 else None].write_parquet(tmp_path / f"log/{nth}.parquet")
    done = unveil("data", "pack", tmp_path / "log" / "[01].parquet", tmp_path / "log/2.parquet", "-o", tmp_path / "p")
    assert done.code == 0, done.err
    assert done.out.startswith(f"{tmp_path / 'p'}: {len(small_frame())} events, 40 users, 30 items; columns user, item")
    return tmp_path / "p"


def test_a_run_on_a_packed_log_is_a_run_on_the_log(
    unveil: Command, finished: Finished, packed: Path, tmp_path: Path
) -> None:
    done = unveil("train", packed, "-o", tmp_path / "run", "-e", "itps", "--preset", "quick", *options())
    assert done.code == 0, done.err
    for line in finished.told:
        assert line in done.out.splitlines()
    for name in ("metrics.json", "model.safetensors", "histories.safetensors", "cases.safetensors", "users.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (finished.folder / name).read_bytes(), name


def test_a_packed_log_is_described_converted_and_checked(
    unveil: Command, finished: Finished, packed: Path, tmp_path: Path
) -> None:
    described = [unveil("data", "describe", log, "--json").out for log in (packed, finished.log)]
    assert described[0] == described[1]
    assert unveil("data", "convert", packed, "-o", tmp_path / "again.csv").code == 0
    assert unveil("data", "convert", finished.log, "-o", tmp_path / "plain.csv").code == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    assert unveil("data", "pack", "--check", packed).out.endswith("as it was packed\n")


def test_mistakes(unveil: Command, packed: Path, tmp_path: Path) -> None:
    assert "nowhere to write to" in unveil("data", "pack", tmp_path / "log").failure()
    assert "only Parquet files are packed" in unveil("data", "pack", packed, "-o", "x", "--format", "csv").failure()
    assert "not a packed log" in unveil("data", "pack", "--check", tmp_path).failure()
    assert "filtered when it was packed" in unveil("train", packed, "-o", tmp_path / "r", "--min-user", 5).failure()
    (tmp_path / "log/1.parquet").write_bytes(b"PAR1")
    told = unveil("data", "pack", tmp_path / "log", "-o", tmp_path / "q").failure()
    assert "1.parquet: not a whole Parquet file" in told
    assert not (tmp_path / "q").exists()
