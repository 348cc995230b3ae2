import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Command
from tests.pages import faults
from tests.run_folders import TINY, Finished, content, experiment_on, write_log
from unveil.errors import UnveilWarning
from unveil.runs.run_folder import short_names
from unveil.runs.train import run


@pytest.fixture(scope="module")
def other(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the same cases whose folder has the same name."""
    folder = tmp_path_factory.mktemp("other") / "run"
    run(experiment_on(finished.log, {**TINY, "estimator.name": "naive"}), folder, tell=lambda _: None)
    return folder


def test_evaluate_gives_what_train_gave(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished.folder, tmp_path / "copy"))
    before = content(copy)
    done = unveil("evaluate", copy, "--no-page")
    assert done.code == 0, done.err
    assert content(copy) == before
    figure = finished.run.evaluation.value("full", "NDCG", 10)
    assert done.out.splitlines()[1].startswith("NDCG@10 ")
    assert f"{figure:.4f} ±" in done.out.splitlines()[1]


def test_evaluate_as_json(unveil: Command, finished: Finished) -> None:
    rows = json.loads(unveil("evaluate", finished.folder, "--json", "--no-page").out)
    assert rows == finished.run.evaluation.summary.to_dicts()


def test_evaluate_shows_the_run_on_its_page(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished.folder, tmp_path / "copy"))
    done = unveil("evaluate", copy, "--json")
    assert json.loads(done.out) == finished.run.evaluation.summary.to_dicts()
    assert done.err == f"open {copy / 'index.html'}\n"
    page = (copy / "index.html").read_text()
    assert faults(page) == []
    assert f"unveil evaluate {copy}" in page
    assert f"{finished.run.evaluation.value('full', 'NDCG', 10):.3f}" in page


def test_a_comparison_as_a_page(unveil: Command, finished: Finished, other: Path, tmp_path: Path) -> None:
    page = tmp_path / "compare.html"
    asked = ["compare", finished.folder, other, "-o", page]
    done = unveil(*asked)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"open {page}"
    text = page.read_text()
    assert faults(text) == []
    for words in ("2 runs compared", "best", "compare.csv", "Holm"):
        assert words in text
    tests = pl.read_csv(tmp_path / "compare.csv")
    assert f"{len(tests):,} tests" in text
    assert {path.name for path in (tmp_path / "compare-figures").iterdir()} >= {"ndcg-full.svg", "ndcg-full.png"}
    before = text
    page.write_text("precious")
    assert "the output is there already" in unveil(*asked).failure()
    assert page.read_text() == "precious"
    assert unveil(*asked, "--overwrite").code == 0
    assert page.read_text() == before.replace("compare.html", "compare.html --overwrite")


def test_tests_are_not_written_over_a_file(unveil: Command, finished: Finished, other: Path, tmp_path: Path) -> None:
    (tmp_path / "tests.csv").write_text("precious")
    asked = ["compare", finished.folder, other, "-o", tmp_path / "tests.csv"]
    assert "the output is there already" in unveil(*asked).failure()
    assert (tmp_path / "tests.csv").read_text() == "precious"
    assert unveil(*asked, "--overwrite").code == 0
    assert "p_holm" in (tmp_path / "tests.csv").read_text()
    assert "expected .html or .csv" in unveil(*asked[:-1], tmp_path / "tests.txt").failure()


def test_compare_names_runs_apart_and_marks_the_best(
    unveil: Command, finished: Finished, other: Path, tmp_path: Path
) -> None:
    done = unveil("compare", finished.folder, other, "-o", tmp_path / "tests.csv")
    assert done.code == 0, done.err
    names = [f"{folder.parent.name}/run" for folder in (finished.folder, other)]
    assert done.out.splitlines()[0].split() == ["full", *names]
    first = done.out.splitlines()[1].split()
    assert first[0] == "NDCG@10"
    assert sum(cell.endswith(("+", "*")) for cell in first[1:]) == 1
    falling = {line.split()[0] for line in done.out.splitlines() if "↓" in line.split()}
    assert falling == {"ARP@10", "Gini@10"}
    assert done.out.splitlines()[-1].startswith("The targets are")
    tests = pl.read_csv(tmp_path / "tests.csv")
    assert set(tests["a"]) == {names[0]}
    assert set(tests["b"]) == {names[1]}
    assert {"p", "p_holm", "protocol", "metric", "k"} <= set(tests.columns)
    assert set(tests.filter(~pl.col("higher_is_better"))["metric"]) == {"ARP"}


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["/a/x", "/a/y"], ["x", "y"]),
        (["/a/x", "/b/x"], ["a/x", "b/x"]),
        (["/a/x", "/b/x", "/b/y"], ["a/x", "b/x", "b/y"]),
        (["/x", "/b/x"], ["/x", "b/x"]),
        (["/a"], ["a"]),
    ],
)
def test_the_shortest_names_that_differ(folders: list[str], names: list[str]) -> None:
    assert short_names([Path(folder) for folder in folders]) == names


def test_what_cannot_be_compared(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    assert "expected at least two" in unveil("compare", finished.folder).failure()
    assert "the same run was named twice" in unveil("compare", finished.folder, finished.folder).failure()
    alien = run(
        experiment_on(write_log(tmp_path / "log.csv", seed=2), {"training.epochs": 1}),
        tmp_path / "b",
        tell=lambda _: None,
    )
    message = unveil("compare", finished.folder, alien.folder, "-o", tmp_path / "tests.csv").failure()
    assert "different cases or negatives" in message
    assert not (tmp_path / "tests.csv").exists()


@pytest.mark.parametrize("command", ["evaluate", "compare", "recommend"])
@pytest.mark.parametrize("kind", ["nowhere", "empty", "file", "other"])
def test_a_folder_that_is_no_run(command: str, kind: str, unveil: Command, finished: Finished, tmp_path: Path) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.write_text("hello")
    elif kind != "nowhere":
        place.mkdir()
        (place / "letter.txt").write_text("dear") if kind == "other" else None
    before = sorted(tmp_path.rglob("*"))
    places = [finished.folder, place] if command == "compare" else [place]
    message = unveil(command, *places).failure()
    assert str(place) in message
    assert "expected" in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", ["evaluate", "recommend"])
@pytest.mark.parametrize("damage", ["truncated", "tampered", "no manifest", "no weights"])
def test_a_damaged_model(command: str, damage: str, unveil: Command, finished: Finished, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished.folder, tmp_path / "copy"))
    weights = copy / "model.safetensors"
    whole = weights.read_bytes()
    if damage == "no manifest":
        (copy / "manifest.json").unlink()
    elif damage == "no weights":
        weights.unlink()
    else:
        weights.write_bytes(whole[:1000] if damage == "truncated" else whole[:-4] + b"\0\0\x80\x3f")
    before = content(copy)
    message = unveil(command, copy).failure()
    assert str(copy) in message
    assert ("manifest.json" if damage == "no manifest" else "model.safetensors") in message
    assert content(copy) == before


def test_a_damaged_evaluation(unveil: Command, finished: Finished, other: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished.folder, tmp_path / "copy"))
    shutil.copy(other / "cases.parquet", copy)
    assert "cases.parquet: not as it was written" in unveil("compare", finished.folder, copy).failure()
    (copy / "metrics.json").write_text("{")
    assert "not an evaluation" in unveil("compare", finished.folder, copy).failure()


def test_a_saved_recommender_is_no_run(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    finished.run.recommender.save(tmp_path / "model")
    assert "the cases of the run are missing" in unveil("evaluate", tmp_path / "model").failure()
    assert unveil("recommend", tmp_path / "model", "-k", 1).code == 0


def test_a_report_of_one_run_and_what_is_refused(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    arguments = ["report", finished.folder, "-o", tmp_path / "report", "--no-dial", "--users", "0001, 0002"]
    done = unveil(*arguments)
    assert done.code == 0, done.err
    assert "run has an NDCG@10 of" in done.out.replace("\n", " ")
    assert f"open {tmp_path / 'report' / 'index.html'}" in done.out
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "figures",
        "index.html",
        "results.csv",
        "results.json",
    ]
    html = (tmp_path / "report" / "index.html").read_text()
    assert "User 0001: requested" in html
    assert "Novelty and accuracy" not in html
    assert "not empty" in unveil(*arguments).failure()
    assert "not a run folder" in unveil("report", tmp_path, "-o", tmp_path / "x").failure()
    assert not (tmp_path / "x").exists()


def test_a_report_does_not_take_the_place_of_its_runs(unveil: Command, finished: Finished) -> None:
    before = content(finished.folder)
    for output in (finished.folder, finished.folder.parent):
        message = unveil("report", finished.folder, "-o", output, "--overwrite").failure()
        assert "the output folder holds what is read" in message
    assert content(finished.folder) == before


def unseen(finished: Finished, users: int = 20) -> list[tuple[str, str]]:
    """Two items that each of some users never interacted with."""
    own = pl.read_csv(finished.log, infer_schema=False).group_by("user_id").agg("item_id").sort("user_id")
    items = [f"0{item:02d}" for item in range(30)]
    known = set(finished.run.recommender.items.ids)
    rows = [(user, [item for item in items if item in known and item not in mine][:2]) for user, mine in own.rows()]
    return [(user, item) for user, found in rows[:users] for item in found]


def test_a_labelled_test_is_evaluated_beside_popularity(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    rows = [*unseen(finished), ("nobody", "000")]
    pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row").write_csv(tmp_path / "likes.csv")
    with pytest.warns(UnveilWarning, match="rows skipped: 1 unknown user"):
        done = unveil("evaluate", finished.folder, "--test", tmp_path / "likes.csv", "--json")
    assert done.code == 0, done.err
    found = {(row["metric"], row["k"]): row for row in json.loads(done.out)}
    assert found["AUC", 0]["n"] == 20
    assert {metric for metric, _ in found} == {"AUC", "MAP", "NDCG", "Recall"}
    with pytest.warns(UnveilWarning):
        table = unveil("evaluate", finished.folder, "--test", tmp_path / "likes.csv").out
    assert re.search(r"labelled ranking +NDCG@10 .*\n.*\npopularity +0\.\d+ ±", table)
    assert "popularity, the best of 1 beside it" in table or "popularity is better on this test, by" in table
    pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row").with_columns(is_rand=0).write_csv(
        tmp_path / "0.csv"
    )
    assert "no row with is_rand 1" in unveil("evaluate", finished.folder, "--test", tmp_path / "0.csv").failure()


def test_runs_are_compared_on_a_labelled_test(unveil: Command, finished: Finished, other: Path, tmp_path: Path) -> None:
    out = tmp_path / "tests.csv"
    done = unveil("compare", finished.folder, other, "--test", labels(finished, tmp_path), "-o", out)
    assert done.code == 0, done.err
    assert "labelled" in done.out
    tests = pl.read_csv(out)
    assert set(tests["protocol"]) == {"labelled"}
    assert tests["n"].unique().to_list() == [20]


def test_a_page_of_a_comparison_on_labels_says_what_they_are(
    unveil: Command, finished: Finished, other: Path, tmp_path: Path
) -> None:
    done = unveil("compare", finished.folder, other, "--test", labels(finished, tmp_path), "-o", tmp_path / "c.html")
    assert done.code == 0, done.err
    page = (tmp_path / "c.html").read_text()
    assert "labels that are not held out of the log" in page
    assert "In full ranking" not in page


@pytest.mark.parametrize("several", [False, True])
def test_a_report_begins_with_the_labelled_test(
    unveil: Command, finished: Finished, other: Path, tmp_path: Path, several: bool
) -> None:
    """Its figures are those of `evaluate --test`; popularity is tested like a run."""
    runs, test = [finished.folder, other][: 1 + several], labels(finished, tmp_path)
    done = unveil("report", *runs, "--test", test, "-o", tmp_path / "report", "--no-dial")
    assert done.code == 0, done.err
    assert done.out.startswith("On the test that is not held out of the log,")
    page = (tmp_path / "report" / "index.html").read_text()
    assert page.index("A test that is not held out of the log") < page.index("Full ranking ranks the target")
    found = json.loads((tmp_path / "report" / "results.json").read_text())["labelled"]
    name = next(name for name in found["runs"] if name.endswith(finished.folder.name))
    alone = json.loads(unveil("evaluate", finished.folder, "--test", test, "--json").out)
    assert found["runs"][name] == alone
    assert len(found["runs"]) == len(runs) + 1
    assert {each["a"] for each in found["tests"]} | {each["b"] for each in found["tests"]} == set(found["runs"])
    for curve in found["calibration"].values():  # all that is promised, and all that came, is one positive a user
        assert sum(curve["size"]) == pytest.approx(20, rel=1e-6)
    written = pl.read_csv(tmp_path / "report" / "results.csv")
    assert {"labelled", "full"} <= set(written["protocol"])


def test_a_report_on_a_leak_writes_nothing(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    asked = ("report", finished.folder, "-o", tmp_path / "report", "--test", finished.log)
    assert "own histories" in unveil(*asked).failure()
    assert not (tmp_path / "report").exists()


def test_options_of_a_labelled_test_need_one(unveil: Command, finished: Finished, other: Path, tmp_path: Path) -> None:
    for command in (["evaluate", finished.folder], ["compare", finished.folder, other]):
        assert "are of a labelled test" in unveil(*command, "--seen", "skip").failure()
    assert "are of a labelled test" in unveil("report", other, "--seen", "skip", "-o", tmp_path / "r").failure()
    assert not (tmp_path / "r").exists()


def labels(finished: Finished, folder: Path) -> Path:
    """A positive and a negative of each of 20 users."""
    rows = [(user, item, place % 2) for place, (user, item) in enumerate(unseen(finished))]
    pl.DataFrame(rows, schema=["user_id", "item_id", "label"], orient="row").write_csv(folder / "labels.csv")
    return folder / "labels.csv"


@pytest.mark.parametrize(
    ("text", "candidates", "problem"),
    [
        ("user_id,item_id\n0000,{own}\n", None, "own histories"),
        ("user_id,item_id\nnobody,000\n", None, "no positive is left"),
        ("user_id,item_id,label\n0000,{unseen},0\n", None, "all labels are alike"),
        ("user_id,item_id\n", None, "no rows"),
        ("user_id,item_id\n0000,{unseen}\n", "{own}\n", "no positive is left"),
        ("user_id,item_id\n0000,{unseen}\n", "\n", "the file is empty"),
    ],
)
def test_a_labelled_test_that_tells_nothing_is_one_message(
    unveil: Command, finished: Finished, tmp_path: Path, text: str, candidates: str | None, problem: str
) -> None:
    own = pl.read_csv(finished.log, infer_schema=False).filter(pl.col("user_id") == "0000")["item_id"][0]
    fill = {"own": own, "unseen": unseen(finished)[0][1]}
    (tmp_path / "likes.csv").write_text(text.format(**fill))
    asked = ["evaluate", finished.folder, "--test", tmp_path / "likes.csv"]
    if candidates is not None:
        (tmp_path / "items.txt").write_text(candidates.format(**fill))
        asked += ["--candidates", tmp_path / "items.txt"]
    done = unveil(*asked)
    assert done.code == 2
    assert problem in done.err
    assert done.err.count("\n") <= 2
