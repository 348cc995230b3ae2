"""Runs side by side: the figures are those of the runs, and what cannot be compared is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.pages import faults
from tests.run_folders import ITEMS, USERS, Finished, experiment_on, write_log
from unveil.errors import UnveilError
from unveil.evaluation.result import Evaluation
from unveil.evaluation.statistics import paired
from unveil.runs.report import Report, ReportOptions, measure_dial, shared_C
from unveil.runs.report_page import at_novelty, write_report, write_run_page
from unveil.runs.run_folder import read_runs
from unveil.runs.train import run
from unveil.serving.model_files import read_dial, write_dial

COMMAND = ["unveil", "report", "naive", "run", "-o", "mysql://me:hush@host/db"]


@pytest.fixture(scope="module")
def titles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("titles") / "titles.csv"
    rows = [{"item_id": f"0{item:02d}", "title": f"Film <{item}>"} for item in range(ITEMS)]
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.fixture(scope="module")
def found(pair: list[Path], titles: Path) -> Report:
    return Report(read_runs(pair), ReportOptions(titles=titles, users=["0007"]))


@pytest.fixture(scope="module")
def folder(found: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(found, folder, COMMAND)
    return folder


def test_the_page_is_sound_and_shows_every_part(folder: Path, found: Report) -> None:
    html = (folder / "index.html").read_text()
    assert faults(html) == []
    assert html.count("<section") == 8
    for row in Evaluation.read(found.runs[1].folder).summary.iter_rows(named=True):
        if row["protocol"] == "full":
            assert f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]" in html
    assert "Film &lt;" in html
    assert "hush" not in html
    drawn = {path.name for path in (folder / "figures").iterdir()}
    assert {"dial-surprise.svg", "dial-surprise.png", "calibration-items.svg", "validation.png"} <= drawn
    assert len(drawn) == 2 * html.count("<svg")


def test_the_files_for_programs(folder: Path, found: Report) -> None:
    told = json.loads((folder / "results.json").read_text())
    assert list(told["runs"]) == ["naive", "run"]
    assert told["differing"] == {"estimator.name": ["naive", "itps"]}
    assert told["runs"]["run"]["summary"] == found.runs[1].evaluation.summary.to_dicts()
    assert told["runs"]["naive"]["weights"] is None
    assert told["examples"][0]["user"] == "0007"
    assert set(told["examples"][0]["lists"]) == {"naive", "run"}
    (example,) = found.examples
    expected = [{"item_id": found.ids[item], "title": found.titles[item]} for item in example.lists[1]]
    assert told["examples"][0]["lists"]["run"] == expected
    assert told["examples"][0]["target"]["item_id"] == f"0{example.target:02d}"
    assert [each["item_id"] for each in told["examples"][0]["history"]] == [f"0{item:02d}" for item in example.history]
    assert len(told["reading"]) >= 5
    tests = pl.read_csv(folder / "tests.csv")
    full = tests.filter(pl.col("protocol") == "full", pl.col("metric") == "NDCG", pl.col("k") == 10)
    values = [run.evaluation.frame.sort("user")["full:NDCG@10"].to_numpy() for run in found.runs]
    assert full["p"][0] == pytest.approx(paired(*values).p)
    assert (full["p_holm"] >= full["p"]).all()
    assert len(pl.read_csv(folder / "results.csv")) == 2 * len(found.runs[0].evaluation.summary)


def test_an_example_is_of_its_user(found: Report) -> None:
    (example,) = found.examples
    frame = found.runs[0].evaluation.frame.filter(pl.col("item") == example.target)
    assert example.user == "0007"
    assert example.why == "requested"
    assert len(example.history) + example.earlier == 4 + 7 - 1
    assert all(len(listed) == 10 for listed in example.lists)
    assert not set(example.history) & {item for listed in example.lists for item in listed}
    assert example.ranks[0] in frame["full:rank"].to_list()


def test_users_are_picked_by_how_far_the_lists_differ(pair: list[Path]) -> None:
    runs = read_runs(pair)
    shared = shared_C(runs)
    first, second = (np.array(run.evaluation.frame["top"].to_list()) for run in runs)
    by_hand = [len(set(a) & set(b)) / 10 for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    assert shared.tolist() == pytest.approx(by_hand)
    most, middle, least = Report(read_runs(pair), ReportOptions(dial=False)).examples
    overlap = [len(set(each.lists[0]) & set(each.lists[1])) / 10 for each in (most, middle, least)]
    assert overlap == [min(by_hand), pytest.approx(np.sort(by_hand)[USERS // 2]), max(by_hand)]


def test_slices_hold_every_case_and_agree_with_the_whole(found: Report) -> None:
    for of in ("training events of the target", "length of the history"):
        parts = [each for each in found.slices if each.of == of]
        assert sum(each.cases for each in parts) == USERS
        whole = np.average([each.estimates[0][0] for each in parts], weights=[each.cases for each in parts])
        assert whole == pytest.approx(found.runs[0].evaluation.value("full", "NDCG", 10))
        assert all(low <= mean <= high for each in parts for mean, low, high in each.estimates)


def test_the_dial_at_0_is_the_run_itself_and_is_read_where_it_was_measured(found: Report, pair: list[Path]) -> None:
    for run_ in found.runs:
        start = found.dials[run_.name][0]
        assert start["ndcg"] == pytest.approx(run_.evaluation.value("full", "NDCG", 10))
        assert start["surprise"] == pytest.approx(run_.evaluation.value("lists", "EFD", 10))


def test_at_zero_it_is_the_evaluation_of_the_run_and_turned_up_lists_are_less_popular(
    finished: Finished, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    points = measure_dial(folder, (0.0, 1.0))
    summary = Evaluation.read(folder).summary.filter(pl.col("protocol").is_in(["full", "lists"]))
    figures = {(row["metric"], row["k"]): row["mean"] for row in summary.iter_rows(named=True)}
    first, last = points
    assert first["recall"] == pytest.approx(figures["Recall", 10])
    assert first["ndcg"] == pytest.approx(figures["NDCG", 10])
    assert first["coverage"] == pytest.approx(figures["Coverage", 10])
    assert first["recall_low"] <= first["recall"] <= first["recall_high"]
    assert last["popularity"] < first["popularity"]
    write_dial(folder, points)
    assert read_dial(folder) == points
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text() + " ")  # as another model's would be
    assert read_dial(folder) == []


def test_between_two_points_of_a_dial() -> None:
    points = [{"surprise": 5.0, "ndcg": 0.4}, {"surprise": 7.0, "ndcg": 0.2}]
    assert at_novelty(points, 6.0) == pytest.approx(0.3)
    assert at_novelty(points, 4.9) is None
    assert at_novelty(points, 7.1) is None


def test_one_run_alone_has_a_page_in_its_own_folder(pair: list[Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(pair[1], tmp_path / "copy"))
    page = write_run_page(read_runs([copy])[0], ["unveil", "train"])
    html = page.read_text()
    assert faults(html) == []
    assert html.count("<section") == 6
    evaluation = Evaluation.read(copy)
    assert f"copy has an NDCG@10 of {evaluation.value('full', 'NDCG', 10):.3f}" in html
    write_report(Report(read_runs(pair[:1]), ReportOptions(dial=False)), tmp_path, ["unveil", "report"])
    alone = (tmp_path / "index.html").read_text()
    assert not (tmp_path / "tests.csv").exists()
    assert not [words for words in ("tests.csv", "other runs", "Significance") if words in alone]


def test_the_page_of_a_run_just_trained_is_that_of_its_folder(finished: Finished, tmp_path: Path) -> None:
    """Nothing is read back: what was trained is at hand."""
    place = tmp_path / "run"
    trained = replace(finished.run, name="run", folder=place)
    new = write_run_page(trained, ["unveil", "train"]).read_bytes()
    shutil.copytree(finished.folder, place, dirs_exist_ok=True)
    assert write_run_page(read_runs([place])[0], ["unveil", "train"]).read_bytes() == new


def test_what_cannot_stand_side_by_side(pair: list[Path], tmp_path: Path) -> None:
    log = pair[1].parent / "log.csv"
    run(experiment_on(log, {"evaluation.seed": 5, "training.epochs": 1}), tmp_path / "asked", tell=lambda _: None)
    with pytest.raises(UnveilError, match=r"naive and asked: these runs were evaluated on different.*evaluation\.seed"):
        read_runs([pair[0], tmp_path / "asked"])
    other = write_log(tmp_path / "other.csv", seed=3)
    run(experiment_on(other, {"training.epochs": 1}), tmp_path / "other", tell=lambda _: None)
    with pytest.raises(UnveilError, match="naive and other: these runs were trained on different logs"):
        read_runs([pair[0], tmp_path / "other"])


def test_a_run_of_another_version_is_named_with_what_it_lacks(pair: list[Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(pair[0], tmp_path / "copy"))
    about = json.loads((copy / "about.json").read_text())
    old = {name: each for name, each in about.items() if name not in ("seal", "workers")}
    (copy / "about.json").write_text(json.dumps(old))
    with pytest.raises(UnveilError, match=r"copy/about\.json: .*nothing of workers.*Train it again"):
        read_runs([copy])


@pytest.mark.parametrize(
    ("name", "value"),
    [("versions", "1.0"), ("log", {"fingerprint": 7}), ("split", None), ("weights", {"slots": 3}), ("workers", "many")],
)
def test_what_was_written_by_hand_is_named(name: str, value: object, pair: list[Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(pair[0], tmp_path / "copy"))
    about = json.loads((copy / "about.json").read_text())
    (copy / "about.json").write_text(json.dumps({**about, name: value}))
    with pytest.raises(UnveilError, match=r"about\.json: not as it was written"):
        read_runs([copy])
    del about["seal"]  # as an earlier version wrote it
    (copy / "about.json").write_text(json.dumps({**about, name: value}))
    with pytest.raises(UnveilError, match=rf"about\.json, {name}.*: not a valid value"):
        read_runs([copy])


@pytest.mark.parametrize(
    "change", [{"epoch": "one"}, {"loss": None}, {"validation": [1]}, {"validation": {"NDCG@10": "x"}}]
)
def test_an_epoch_written_by_hand_is_named(change: dict[str, object], pair: list[Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(pair[0], tmp_path / "copy"))
    first, *others = (copy / "training.jsonl").read_text().splitlines()
    (copy / "training.jsonl").write_text("\n".join([json.dumps({**json.loads(first), **change}), *others]))
    with pytest.raises(UnveilError, match=rf"training\.jsonl, row 1, {next(iter(change))}.*: not a valid value"):
        read_runs([copy])


def test_what_is_no_finished_run(pair: list[Path], folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="named twice"):
        read_runs([pair[0], pair[0]])
    with pytest.raises(UnveilError, match=r"the results of another command.*index\.html"):
        read_runs([folder])
    with pytest.raises(UnveilError, match="not a run folder"):
        read_runs([tmp_path])
    copy = Path(shutil.copytree(pair[0], tmp_path / "copy"))
    (copy / "manifest.json").unlink()
    with pytest.raises(UnveilError, match=r"the run is not finished.*--resume"):
        read_runs([copy])


def test_users_that_have_no_list(pair: list[Path]) -> None:
    with pytest.raises(UnveilError, match="no such user in the log: found 'nobody'"):
        Report(read_runs(pair), ReportOptions(users=["nobody"], dial=False))
