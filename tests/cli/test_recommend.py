import json
import shutil
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.cli.conftest import Command
from tests.pages import faults
from tests.run_folders import Finished, content
from unveil.serving.recommender import SCHEMA

WITHOUT_USER = {name: kind for name, kind in SCHEMA.items() if name != "user_id"}


def read(path: Path, schema: dict[str, type[pl.DataType]] = SCHEMA) -> pl.DataFrame:
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    return pl.read_csv(path, schema=schema) if path.suffix == ".csv" else pl.read_ndjson(path, schema=schema)


@pytest.mark.parametrize("name", ["lists.csv", "lists.jsonl", "lists.parquet"])
def test_lists_of_all_users_as_a_file(name: str, unveil: Command, finished: Finished, tmp_path: Path) -> None:
    done = unveil("recommend", finished.folder, "-k", 3, "-o", tmp_path / name)
    assert done.code == 0, done.err
    frame = read(tmp_path / name)
    assert frame.columns == ["user_id", "item_id", "score", "rank"]
    assert_frame_equal(frame, finished.run.recommender.recommend(k=3).frame, check_exact=True)
    assert frame["user_id"][0] == "0000"
    assert f"{len(frame)} rows" in done.out


def test_lists_on_standard_output(unveil: Command, finished: Finished) -> None:
    expected = finished.run.recommender.recommend(k=2).frame
    text = unveil("recommend", finished.folder, "-k", 2, "--as", "csv").out
    assert_frame_equal(pl.read_csv(StringIO(text), schema=SCHEMA), expected, check_exact=True)
    lines = unveil("recommend", finished.folder, "-k", 2, "--as", "jsonl").out.splitlines()
    assert [json.loads(line)["item_id"] for line in lines] == expected["item_id"].to_list()
    head, first, *_ = unveil("recommend", finished.folder, "-k", 2).out.splitlines()
    assert head.split() == ["user_id", "item_id", "score", "rank"]
    assert first.split()[0] == "0000"


def test_after_a_history(unveil: Command, finished: Finished) -> None:
    done = unveil("recommend", finished.folder, "--history", "001, stranger,002", "-k", 4, "--as", "csv")
    frame = pl.read_csv(StringIO(done.out), schema=WITHOUT_USER)
    assert frame.equals(finished.run.recommender.recommend_for([["001", "002"]], 4).frame.drop("user_id"))
    assert done.err == "unknown items skipped (1): stranger\n"
    assert not {"001", "002"} & set(frame["item_id"])
    all_of_them = unveil("recommend", finished.folder, "--history", "001,002", "-k", 30, "--keep-seen", "--as", "csv")
    assert len(pl.read_csv(StringIO(all_of_them.out))) == 30


@pytest.mark.parametrize("name", ["lists.csv", "lists.jsonl", "lists.parquet"])
def test_the_list_after_a_history_is_nobodys(name: str, unveil: Command, finished: Finished, tmp_path: Path) -> None:
    asked = ["recommend", finished.folder, "--history", "001,002", "-k", 2]
    head, first, second = unveil(*asked).out.splitlines()
    assert head.split() == ["item_id", "score", "rank"]
    assert (first.split()[-1], second.split()[-1]) == ("1", "2")
    assert all(json.loads(line).keys() == WITHOUT_USER.keys() for line in unveil(*asked, "--as", "jsonl").out.split())
    assert unveil(*asked, "-o", tmp_path / name).code == 0
    expected = finished.run.recommender.recommend_for([["001", "002"]], 2).frame.drop("user_id")
    assert_frame_equal(read(tmp_path / name, WITHOUT_USER), expected, check_exact=True)


def test_leading_zeros_matter(unveil: Command, finished: Finished) -> None:
    assert "no item of the history is known" in unveil("recommend", finished.folder, "--history", "1,2").failure()


def test_for_some_users(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    users = tmp_path / "users.txt"
    users.write_text("\n".join(["0007", *(f"ghost{n}" for n in range(7)), "0003"]))
    done = unveil("recommend", finished.folder, "--users", users, "-k", 1, "--as", "csv")
    assert pl.read_csv(StringIO(done.out), schema=SCHEMA)["user_id"].to_list() == ["0007", "0003"]
    assert done.err == "unknown users skipped (7): ghost0, ghost1, ghost2, ghost3, ghost4, …\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--history", "x,y"], "no item of the history is known: found 'x, y'"),
        (["-k", "31"], "k is out of range: found 31, expected between 1 and the 30 items"),
        (["-k", "0"], "k is out of range: found 0"),
        (["--history", "001", "-k", "31"], "k is out of range"),
        (["--users", "gone.txt"], "gone.txt: cannot be read: No such file"),
        (["--users", "gone.txt", "--history", "001"], "both given"),
        (
            ["-o", "lists.xlsx"],
            "lists.xlsx: unknown kind of file: found '.xlsx', expected one of .csv, .jsonl, .parquet",
        ),
        (["-o", "lists"], "unknown kind of file"),
    ],
)
def test_what_is_wrong_is_one_message_and_nothing_is_written(
    arguments: list[str],
    message: str,
    unveil: Command,
    finished: Finished,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = content(finished.folder)
    assert message in unveil("recommend", finished.folder, *arguments).failure()
    assert not list(tmp_path.iterdir())
    assert content(finished.folder) == before


def test_a_file_that_is_there_is_not_buried(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    mine = tmp_path / "ratings.csv"
    mine.write_text("user_id,item_id\n")
    for whom in ([], ["--history", "001"]):
        asked = ["recommend", finished.folder, *whom, "-k", 1, "-o", mine]
        assert "ratings.csv: the output is there already" in unveil(*asked).failure()
    assert mine.read_text() == "user_id,item_id\n"
    assert unveil("recommend", finished.folder, "-k", 1, "-o", mine, "--overwrite").code == 0
    assert len(pl.read_csv(mine)) == 40


def test_a_place_that_cannot_be_written_to(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    message = unveil("recommend", finished.folder, "-k", 1, "-o", tmp_path / "file" / "lists.csv").failure()
    assert "cannot write" in message


def test_a_table_of_reasons_has_a_legend(unveil: Command, finished: Finished) -> None:
    asked = ["recommend", finished.folder, "--history", "001,002", "-k", 1, "--reasons", 1]
    assert "× 1.50: the recommended item is 1.5 times as likely" in unveil(*asked).out
    assert len(unveil(*asked, "--as", "csv").out.splitlines()) == 2


def test_reasons_novelty_and_conditions(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item_id,kind\n" + "".join(f"0{n:02d},{'ab'[n % 2]}\n" for n in range(30)))
    asked = ["recommend", finished.folder, "--history", "001,002", "-k", 3, "--novelty", 0.5, "--reasons", 1]
    done = unveil(*asked, "--items", tmp_path / "items.csv", "--where", "kind=b", "--as", "csv")
    frame = pl.read_csv(StringIO(done.out), infer_schema=False)
    assert frame.columns == ["item_id", "score", "rank", "popularity", "propensity", "propensity_source", "reasons"]
    assert all(int(item) % 2 for item in frame["item_id"])
    assert set(frame["reasons"].str.slice(0, 3)) <= {"001", "002"}


def test_those_of_whom_nothing_is_known(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("ghost\n0003\n")
    asked = ["recommend", finished.folder, "-k", 1, "--as", "csv", "--fallback", "popularity"]
    done = unveil(*asked, "--users", tmp_path / "users.txt")
    assert done.err == "by popularity, for unknown users (1): ghost\n"
    assert pl.read_csv(StringIO(done.out), infer_schema=False)["user_id"].to_list() == ["0003", "ghost"]
    done = unveil(*asked, "--history", "x")
    assert done.err == "unknown items skipped (1): x\nby popularity: no item of the history is known\n"


def test_histories_with_columns_of_other_names(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "neu.csv").write_text("kunde,artikel\nnew,001\nnew,002\n")
    asked = ["recommend", finished.folder, "-k", 1, "--as", "csv", "--user-col", "kunde", "--item-col", "artikel"]
    assert unveil(*asked, "--histories", tmp_path / "neu.csv").out.splitlines()[1].startswith("new,")
    assert "options to read histories without histories" in unveil(*asked).failure()


def test_exclusions_that_nobody_knows_are_named(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "sold_out.txt").write_text("item_id\n001\n")
    done = unveil("recommend", finished.folder, "--exclude", tmp_path / "sold_out.txt", "-o", tmp_path / "lists.csv")
    assert done.err == "unknown exclusions skipped (1 of 2): item_id\n"


def test_what_the_dial_gives_is_a_page_too(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    done = unveil("recommend", run, "--dial")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"open {run / 'dial.html'}"
    page, points = (run / "dial.html").read_text(), json.loads((run / "dial.json").read_text())["points"]
    assert faults(page) == []
    assert f"{points[0]['recall']:.3f} → {points[-1]['recall']:.3f}" in page
    assert {path.suffix for path in (run / "dial-figures").iterdir()} == {".svg", ".png"}
    (tmp_path / "mine.html").write_text("precious")
    named = ["recommend", run, "--dial", "-o", tmp_path / "mine.html"]
    assert "the output is there already" in unveil(*named).failure()
    assert "expected .html" in unveil(*named[:-1], tmp_path / "dial.csv").failure()
    assert (tmp_path / "mine.html").read_text() == "precious"
    assert unveil(*named, "--overwrite").code == 0
    assert faults((tmp_path / "mine.html").read_text()) == []


def test_everything_at_once(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    before = content(finished.folder)
    asked = ["export", finished.folder, "--onnx", "--embeddings", "--weights", "--as", "csv", "-o", tmp_path / "out"]
    done = unveil(*asked)
    assert done.code == 0, done.err
    names = {"model.onnx", "item_vectors.parquet", "query_vectors.parquet", "weights.csv"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert len(done.out.splitlines()) == 4
    assert "difference from torch" in done.out
    assert "not with these weights" not in done.err
    others = unveil("export", finished.folder, "--weights", "--set", "estimator.name=ips", "-o", tmp_path / "ips")
    assert "trained with itps and not with these weights: they are those of ips" in others.err
    assert "these weights are 1 / popularity" in done.err
    assert content(finished.folder) == before
    assert pl.read_csv(tmp_path / "out" / "weights.csv")["weight"].mean() == pytest.approx(1)
    assert "the output is there already" in unveil(*asked).failure()
    assert unveil(*asked, "--overwrite").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to export was named: expected --onnx, --embeddings or --weights"),
        (["--weights", "--as", "xlsx"], "cannot tell the format to write from the name"),
        (["--weights", "--set", "estimator.clip=2"], "clip: out of range: found 2, expected between 0 and 1"),
        (["--weights", "--set", "estimator.name=isp"], "Did you mean 'ips'?"),
    ],
)
def test_what_is_wrong_is_one_message(
    arguments: list[str], message: str, unveil: Command, finished: Finished, tmp_path: Path
) -> None:
    assert message in unveil("export", finished.folder, *arguments, "-o", tmp_path / "out").failure()
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_folder_that_holds_no_run(unveil: Command, tmp_path: Path) -> None:
    assert "not the folder of a trained model" in unveil("export", tmp_path, "--onnx").failure()
    assert "not a run folder" in unveil("export", tmp_path, "--weights").failure()
