"""Advice by random rows and by labels from elsewhere, on generated clicks whose appeal is known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.pages import faults
from unveil.data.filters import LogSource
from unveil.errors import UnveilError
from unveil.runs.config import Experiment
from unveil.runs.workers import Inline
from unveil.settings import plain
from unveil.studies.advise_by_test import AdviseByTest, Choice, write_test_config
from unveil.studies.engine import Answer, Report, run, write
from unveil.studies.unbiased import data_of

USERS, ITEMS = 120, 40
TINY = ("model.width=8", "model.length=8", "training.epochs=1", "training.validate_every=1")


def rows(*, popular_liked: bool) -> pl.DataFrame:
    """Users choose popular items; of random ones they click the popular, or the others."""
    rng, weight = np.random.default_rng(0), 1.0 / np.arange(1, ITEMS + 1)
    found: list[tuple[str, str, int, int, int]] = []
    for user in range(USERS):
        chosen = rng.choice(ITEMS, 8, replace=False, p=weight / weight.sum())
        found += [(f"u{user}", f"i{item}", place, 1, 0) for place, item in enumerate(chosen)]
        appeal = 1 - np.arange(ITEMS) / ITEMS if popular_liked else np.arange(ITEMS) / ITEMS
        shown = rng.choice(ITEMS, 12, replace=False)
        found += [(f"u{user}", f"i{item}", 50, int(rng.random() < appeal[item] ** 2), 1) for item in shown]
    return pl.DataFrame(found, schema=["user_id", "item_id", "timestamp", "clicked", "is_rand"], orient="row")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("random") / "log.csv"
    rows(popular_liked=True).write_csv(path)
    return path


def study(log: Path, test: str = "", **changes: Any) -> AdviseByTest:
    fields: dict[str, Any] = {
        "changes": TINY,
        "replicates": 1,
        "estimators": ("itps",),
        "propensities": ("popularity",),
    }
    return AdviseByTest.of(LogSource(log=str(log)), test, **fields | changes)


@pytest.fixture(scope="module")
def report(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("advice")
    found = write(run(study(log), folder, Inline()), folder, ["unveil", "advise", str(log)])
    write_test_config(found)
    return found


def test_random_rows_are_the_test_and_no_part_of_training(log: Path) -> None:
    own, sequences, test = data_of(study(log))
    assert own.randomised is not None
    assert not own.randomised.any()
    assert len(sequences) == 8 * USERS
    assert 0 < test.label_R.mean() < 1
    assert study(log).metric == "AUC", "a user has fewer than ten positives"


def test_one_half_chooses_and_the_other_tests_the_choice(report: Report) -> None:
    answer, frame = report.answer, report.answer.frame.filter(metric="AUC")
    choice, networks = (answer.study.choices(answer.results)[name] for name in ("choice", "network"))
    means = {
        (str(arm), str(half)): float(part["value"].to_numpy().mean())
        for (arm, half), part in frame.group_by("estimator", "half")  # one replicate: a row a user
    }
    first = {arm: mean for (arm, half), mean in means.items() if half == "A"}
    assert first[choice.arm] == pytest.approx(max(first.values()))
    assert choice.test.difference == pytest.approx(means[choice.arm, "B"] - means["naive", "B"])
    halves = frame.filter(estimator="naive").group_by("half").agg(pl.col("user").unique())
    assert not set.intersection(*(set(users) for users in halves["user"]))
    assert choice.test.n == frame.filter(estimator="naive", half="B").height
    assert networks.arm in ("naive", "itps@popularity+clip=5%")


def test_a_baseline_that_wins_is_named_and_a_network_is_written(report: Report) -> None:
    """Where the popular is liked, an epoch of a tiny network is no match for counting."""
    choice = report.answer.study.choices(report.answer.results)["choice"]
    assert choice.advised in ("most-popular", "popularity-balanced", "ease", "item-knn")
    assert "not a network" in report.paragraphs[0]
    config = Experiment.of(report.answer.folder / "advice.toml")
    assert plain(config)["model"]["name"] == "sasrec"
    assert config.estimator["name"] in ("naive", "itps")
    assert faults((report.answer.folder / "index.html").read_text()) == []
    found = json.loads((report.answer.folder / "results.json").read_text())["advice"]["choice"]
    assert found["arm"] == choice.arm
    assert any("unveil calibrate run --slice" in paragraph for paragraph in report.paragraphs)


def answered(values: dict[str, tuple[list[float], list[float]]], made: Report) -> Answer:
    """The answer with these values on halves A and B."""
    records = {
        cell.key: {
            "user": list(range(sum(map(len, values[cell.at["estimator"]])))),
            "half": [half for half, own in zip("AB", values[cell.at["estimator"]], strict=True) for _ in own],
            "found": {cell.at["estimator"]: {"AUC": [each for own in values[cell.at["estimator"]] for each in own]}},
        }
        for cell in made.answer.cells
    }
    return Answer(made.answer.study, made.answer.source, made.answer.cells, records)


def test_what_only_the_choosing_half_likes_is_not_advised(report: Report) -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, (2, 30))
    base = (noise[0].tolist(), noise[1].tolist())
    values = dict.fromkeys(report.answer.study.estimators, base)
    values["ease"] = ((noise[0] + 0.2).tolist(), (noise[1] + rng.normal(0, 0.1, 30)).tolist())
    found = answered(values, report)
    choice: Choice = found.study.choices(found.results)["choice"]
    assert (choice.arm, choice.advised) == ("ease", "naive")
    assert Report(found).paragraphs[0].startswith("Use the naive loss. ease was best on the half")
    values["ease"] = (values["ease"][0], (noise[1] + 0.2 + rng.normal(0, 0.1, 30)).tolist())
    found = answered(values, report)
    assert found.study.choices(found.results)["choice"].advised == "ease"


def test_labels_from_elsewhere(log: Path, tmp_path: Path) -> None:
    labels = rows(popular_liked=False).filter(is_rand=1).select("user_id", "item_id", label="clicked")
    labels.write_csv(tmp_path / "labels.csv")
    own, _, test = data_of(study(log, str(tmp_path / "labels.csv")))
    assert own.randomised is not None
    assert not own.randomised.any(), "random rows are not trained on, whatever the test"
    assert len(test.user_R) < len(labels), "items of the users' own histories are passed over"


def test_a_log_of_a_feed_is_not_offered_the_choice_model(log: Path) -> None:
    feed = rows(popular_liked=True).with_columns(clicked=pl.col("clicked") * (pl.col("timestamp") % 3 > 0))
    fields: dict[str, Any] = {"estimators": ("itps", "corrected"), "propensities": ("popularity", "recorded")}
    tried = {}
    for name, shown in {"feed": feed, "lists": feed.with_columns(timestamp=pl.col("timestamp") // 3)}.items():
        shown.write_csv(log.with_name(f"{name}.csv"))
        tried[name] = study(log.with_name(f"{name}.csv"), **fields)
    assert set(tried["lists"].estimators) - set(tried["feed"].estimators) == {"corrected@recorded"}
    assert "one item at a time" in tried["feed"].refused["corrected@recorded"]


def test_mistakes_are_found_before_any_training(log: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("user_id,item_id\nu0,i39\n")
    with pytest.raises(UnveilError, match="too few users for two halves"):
        run(study(log, str(few)), tmp_path / "none", Inline())
    own, _, test = data_of(study(log))
    for half in study(log).halves(test, own):  # all labels of the other half are 0: nobody there to choose, or to test
        liked = [raw if user in half else 0 for user, raw in zip(test.user_R, test.label_R.astype(int), strict=True)]
        ids = {"user_id": own.users.raw(test.user_R), "item_id": own.items.raw(test.item_R), "label": liked}
        pl.DataFrame(ids).write_csv(few)
        with pytest.raises(UnveilError, match="too few users for two halves"):
            run(study(log, str(few)), tmp_path / "none", Inline())
    assert not (tmp_path / "none").exists()
    with pytest.raises(UnveilError, match="no such metric"):
        study(log, metric="nDCG")
