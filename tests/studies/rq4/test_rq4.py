"""RQ4 on a tiny log, from the study to the files."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.pages import faults
from tests.run_folders import write_log
from unveil.cli.main import app
from unveil.errors import UnveilError
from unveil.evaluation.metrics import metric
from unveil.runs.workers import Inline
from unveil.studies.engine import Answer, Context, Report, run, write
from unveil.studies.paper import read_log, recognised
from unveil.studies.results import CONTROL, STANDARD, Measure
from unveil.studies.rq4 import RQ4

CHANGES = (
    "model.width=8",
    "model.blocks=1",
    "model.heads=1",
    "model.length=8",
    "task.batch_size=16",
    "training.epochs=3",
)
COMMAND = ["unveil", "reproduce", "rq4", "-o", "a folder"]
NEGATIVES = 5


def study_of(log: Path, **fields: Any) -> RQ4:
    given = {"negatives": NEGATIVES, "strengths": (0.0, 0.5, 1.0), "changes": CHANGES, "replicates": 2}
    return RQ4(log=str(log), min_item=0, min_user=0, **{**given, **fields})


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


@pytest.fixture(scope="module")
def done(log: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Answer, Path]:
    folder = tmp_path_factory.mktemp("rq4") / "run"
    found = run(study_of(log), folder, Inline())
    write(found, folder, COMMAND)
    return found, folder


def test_every_arm_has_every_replicate_under_three_rankings(done: tuple[Answer, Path]) -> None:
    results = done[0].results
    assert results.arms == ["random", "popularity", "naive", "ips", "itps", "control"]
    assert results.trained == ["naive", "ips", "itps", "control"]
    assert set(results.protocols) == {"full", f"uniform-{NEGATIVES}", f"popular-{NEGATIVES}"}
    assert results.units == "replicates"


def test_replicates_differ_in_everything_random(done: tuple[Answer, Path]) -> None:
    first, second = done[0].where(estimator="naive")
    assert first["training"]["loss"] != second["training"]["loss"]
    ranks = [record["ranks"][STANDARD] for record in done[0].where(estimator="popularity")]
    assert ranks[0][f"uniform-{NEGATIVES}"] != ranks[1][f"uniform-{NEGATIVES}"]
    assert ranks[0]["full"] == ranks[1]["full"]


def test_the_control_is_the_naive_model_where_nothing_is_subtracted(done: tuple[Answer, Path]) -> None:
    for naive in done[0].where(estimator="naive"):
        control = naive[CONTROL]
        for protocol, strength in control["strength"].items():
            along = control["along"][protocol]
            assert along[control["strengths"].index(strength)] == max(along)
            same = control["ranks"][STANDARD][protocol] == naive["ranks"][STANDARD][protocol]
            assert same or strength > 0


def test_a_strength_of_zero_is_validated_as_the_best_epoch_was(done: tuple[Answer, Path]) -> None:
    for naive in done[0].where(estimator="naive"):
        best = naive["training"]["best"]["value"]
        assert naive[CONTROL]["along"][f"popular-{NEGATIVES}"][0] == pytest.approx(best)


def test_weights_are_recorded_as_they_are_and_as_the_paper_writes_them(done: tuple[Answer, Path]) -> None:
    weights = done[0].where(estimator="ips")[0]["weights"]
    assert weights["effective_sample_size"] > weights["as_written"]["effective_sample_size"]
    assert weights["as_written"]["spread"] == pytest.approx(weights["spread"] ** 2, rel=1e-3)  # exponent 0.5
    assert done[0].where(estimator="naive")[0]["weights"] is None


def test_results_are_rows_of_the_common_form(done: tuple[Answer, Path]) -> None:
    told = json.loads((done[1] / "results.json").read_text())
    assert told["question"] == "rq4"
    assert not told["data"]["name"]
    assert len(told["control"]) == 2
    rows = {(row["estimator"], row["protocol"], row["metric"], row["k"]): row for row in told["rows"]}
    ranks = np.array([cell["ranks"][STANDARD]["full"] for cell in done[0].where(estimator="itps")])
    by_hand = [metric("NDCG")(rank_C, 10).mean() for rank_C in ranks]  # type: ignore[operator]
    row = rows["itps", "full", "NDCG", 10]
    assert row["mean"] == pytest.approx(np.mean(by_hand))
    assert row["low"] < row["mean"] < row["high"]
    with (done[1] / "results.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(told["rows"])


def test_the_page_and_the_readme_name_the_proxy(done: tuple[Answer, Path]) -> None:
    for name in ("README.md", "index.html"):
        text = (done[1] / name).read_text()
        assert "in place of exposure" in text
        assert "unbiased" not in text.lower()
        assert f"settings and exponents for ml-1m; changed: {', '.join(CHANGES)}" in text
    assert faults((done[1] / "index.html").read_text()) == []
    assert (done[1] / "figures" / "control.svg").is_file()
    assert (done[1] / "figures" / "control.png").is_file()


def test_the_papers_order_is_named_where_it_is_one(done: tuple[Answer, Path]) -> None:
    known = replace(done[0], source=replace(done[0].source, name="ml-1m"))
    assert "(the paper’s: ITPS, IPS, naive)" in Report(known).paragraphs[0]
    assert "the paper’s:" not in Report(done[0]).paragraphs[0]


def test_a_finished_run_makes_nothing_again_and_keeps_no_checkpoint(done: tuple[Answer, Path], log: Path) -> None:
    again = run(study_of(log), done[1], Inline())
    assert again.made == 0
    assert not list(done[1].glob("trainings/*/checkpoint.safetensors"))
    assert len(list(done[1].glob("trainings/*/training.jsonl"))) == 6


def test_a_training_that_was_stopped_goes_on_from_its_last_epoch(log: Path, tmp_path: Path) -> None:
    study = study_of(log, replicates=1, changes=(*CHANGES, "training.checkpoint_minutes=0"))
    cell = next(cell for cell in study.cells() if cell.key == "r0-itps")

    class StopError(Exception):
        pass

    def stop_after_two(share: float) -> None:
        if share > 0.6:
            raise StopError

    with pytest.raises(StopError):
        study.run_cell(cell, Context(tmp_path / "a", stop_after_two))
    shares: list[float] = []
    resumed = study.run_cell(cell, Context(tmp_path / "a", shares.append))
    assert shares == [pytest.approx(2 / 3), 1.0]
    assert resumed == study.run_cell(cell, Context(tmp_path / "b"))


def test_an_arm_may_read_fewer_tokens_than_the_naive_one(log: Path, tmp_path: Path) -> None:
    changes = (*CHANGES, "training.epochs=1", "itps:model.length=5", "itps:task.mask_probability=0.3")
    study = study_of(log, replicates=1, estimators=("naive", "itps"), changes=changes)
    found = run(study, tmp_path / "run", Inline())
    assert len(found.where(estimator="itps")[0]["ranks"][STANDARD]["full"]) == 40


def test_one_replicate_has_intervals_over_users(log: Path, tmp_path: Path) -> None:
    found = run(study_of(log, replicates=1, estimators=("naive", "itps")), tmp_path / "run", Inline())
    results = found.results
    assert results.units == "users"
    one = results.estimate("naive", Measure(STANDARD, "full", "NDCG", 10))
    assert one.n == 40
    assert one.low is not None
    assert one.high is not None
    assert one.low < one.mean < one.high
    write(found, tmp_path / "run", COMMAND)
    assert "bootstraps over users" in (tmp_path / "run" / "README.md").read_text()


def test_the_paper_preset_has_the_authors_settings(log: Path) -> None:
    study = study_of(log, tuned_for="beauty", changes=())
    ips, itps = study.recipe("ips", 0), study.recipe("itps", 0)
    assert (ips.model.length, ips.estimator["exponent"], ips.training.epochs) == (10, 0.01, 100)
    assert (itps.task.mask_probability, itps.estimator["exponent"]) == (0.6, 0.2)
    assert itps.propensity["name"] == "popularity-temporal"
    assert study.validation == f"popular-{NEGATIVES}"
    assert study.recipe("naive", 0).training.seed != study.recipe("naive", 1).training.seed


def test_converged_shares_the_backbone_and_keeps_the_exponent(log: Path) -> None:
    study = study_of(log, preset="converged", changes=("itps:estimator.clip=0.1",))
    naive, itps = study.recipe("naive", 0), study.recipe("itps", 0)
    assert naive.model == itps.model
    assert itps.estimator == {"name": "itps", "exponent": 0.2, "clip": 0.1}
    assert "clip" not in study.recipe("ips", 0).estimator
    assert study.validation == "full"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"preset": "papre"}, "Did you mean 'paper'"),
        ({"tuned_for": "ml-2m"}, "unknown data set"),
        ({"strengths": (0.5,)}, "begin with 0"),
        ({"negatives": 0}, "at least 1"),
        ({"changes": ("ipz:model.width=3",)}, "unknown estimator"),
    ],
)
def test_what_is_wrong_is_said_at_once(log: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnveilError, match=message):
        study_of(log, **change)


def test_studies_that_make_no_sense_are_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UnveilError, match="needs a world"):
        study_of(log, estimators=("naive", "ideal"))
    with pytest.raises(UnveilError, match="naive estimator"):
        study_of(log, estimators=("ips",))
    with pytest.raises(UnveilError, match="--negatives"):
        run(study_of(log, negatives=29), tmp_path / "run", Inline())
    assert not (tmp_path / "run").exists()


def test_logs_are_filtered_as_the_papers_were(tmp_path: Path) -> None:
    rows = [(f"u{user}", f"i{item}", item) for user in range(6) for item in range(6 if user else 5)]
    rows += [("u0", "rare", 9), ("short", "i0", 1)]
    frame = pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")
    frame.write_csv(tmp_path / "log.csv")
    left = read_log(str(tmp_path / "log.csv"))
    assert "rare" not in left.items
    assert "short" not in left.users
    assert len(read_log(str(tmp_path / "log.csv"), 0, 0)) == len(rows)


def test_beauty_is_read_from_where_it_was_put_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNVEIL_DATA", str(tmp_path))
    with pytest.raises(UnveilError, match=r"BERT4Rec.*put it at .*beauty\.txt, or name its path"):
        read_log("beauty")
    (tmp_path / "beauty").mkdir()
    lines = [f"{user} {user + n}\n" for user in (1, 2) for n in range(6)]
    (tmp_path / "beauty" / "beauty.txt").write_text("".join(lines))
    assert len(read_log("beauty", 0, 0)) == 12


@pytest.mark.parametrize(("data", "file"), [("ml-1m", "ml-1m/ml-1m.txt.gz"), ("beauty", "beauty/beauty.txt.gz")])
def test_the_papers_logs_are_recognised_by_their_size(shared_data: Path, data: str, file: str) -> None:
    log = read_log(str(shared_data / file))
    assert recognised(len(log.users), len(log.items), len(log)) == data


def test_a_log_is_recognised_by_all_three_counts() -> None:
    assert recognised(6_040, 3_416, 999_611) == "ml-1m"
    assert recognised(6_040, 3_416, 999_610) is None


def test_the_command_does_it_all_and_goes_on_where_it_stopped(log: Path, tmp_path: Path) -> None:
    settings = [word for change in CHANGES for word in ("--set", change)]
    words = ["reproduce", "rq4", "--data", str(log), "--replicates", "1", "--negatives", "5", "--jobs", "1", *settings]
    words += ["--min-item", "0", "--min-user", "0", "-e", "naive,itps", "-o", str(tmp_path / "run")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "Ranked against 5 popular items" in done.output
    first = (tmp_path / "run" / "results.json").read_bytes()
    assert CliRunner().invoke(app, words).exit_code == 0
    assert (tmp_path / "run" / "results.json").read_bytes() == first
    other = CliRunner().invoke(app, [*words, "--seed", "4"])
    assert "belongs to another run" in str(other.exception)
