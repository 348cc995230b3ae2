"""Labelled tests of runs in Python, and as what picks the epoch or the settings of a training."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import unveil
from tests.run_folders import Finished, experiment_on, small_frame
from unveil.errors import UnveilError, UnveilWarning
from unveil.evaluation.labelled import LabelledValidation, evaluate
from unveil.models.base import Model
from unveil.runs.labelled import labelled_validation, read_test
from unveil.runs.train import run
from unveil.runs.tune.subjects import Training


def likes() -> pl.DataFrame:
    """Two items that each user never interacted with: one liked, one not."""
    log = small_frame()
    rows = list[tuple[str, str, int]]()
    known = sorted(set(log["item_id"]))
    for user, own in log.group_by("user_id").agg("item_id").sort("user_id").rows():
        first, second = [item for item in known if item not in own][:2]
        rows += [(user, first, 1), (user, second, 0)]
    return pl.DataFrame(rows, schema=["user_id", "item_id", "label"], orient="row")


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    likes().write_csv(tmp_path / "labels.csv")
    return tmp_path / "labels.csv"


class Columns(dict[str, list[object]]):
    """What a frame of pandas is here: iterated over its columns' names, each of which gives a column."""


def test_a_file_and_frames_give_the_same(finished: Finished, labels: Path) -> None:
    by_file = unveil.evaluate_labelled(finished.folder, labels)
    recommender = unveil.Recommender.load(finished.folder)
    for test in (likes(), Columns(likes().to_dict(as_series=False))):
        found = unveil.evaluate_labelled(recommender, test)
        assert found.summary.equals(by_file.summary)
        assert list(found.baselines) == ["popularity"]
    assert by_file.value("labelled", "AUC", 0) == pytest.approx(float(by_file.frame["labelled:AUC"].to_numpy().mean()))


def test_candidates_may_be_ids(finished: Finished, tmp_path: Path) -> None:
    rows = likes().filter(label=1).drop("label")
    ids = sorted(set(likes()["item_id"]))
    (tmp_path / "items.txt").write_text("\n".join(ids))
    found = unveil.evaluate_labelled(finished.folder, rows, candidates=ids)
    assert found.summary.equals(
        unveil.evaluate_labelled(finished.folder, rows, candidates=tmp_path / "items.txt").summary
    )


def test_ratings_become_labels(finished: Finished) -> None:
    recommender = finished.run.recommender
    known = recommender.users, recommender.items, recommender.sequences
    rated = likes().select("user_id", "item_id", rating=pl.when(pl.col("label") == 1).then(4.0).otherwise(3.9))
    test = read_test(rated, *known, min_rating=4)
    assert test.fingerprint == read_test(likes(), *known).fingerprint


def test_a_frame_without_users_is_one_message(finished: Finished) -> None:
    with pytest.raises(UnveilError, match="the frame"):
        unveil.evaluate_labelled(finished.folder, likes().drop("user_id"))
    with pytest.raises(UnveilError, match="no rows"):
        unveil.evaluate_labelled(finished.folder, likes().clear())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"seen": "ignore"}, "seen: out of range: found 'ignore', expected one of error, skip, keep"),
        ({"ks": (0,)}, "no such metric: found 'NDCG@0'"),
        ({"ks": (1.5,)}, "no such metric: found 'NDCG@1.5'"),
        ({"candidates": [10**6]}, "no candidate is an item of the log"),  # numbers are ids as text is
    ],
)
def test_options_out_of_range(options: dict[str, Any], problem: str, finished: Finished) -> None:
    with pytest.raises(UnveilError, match=problem):
        unveil.evaluate_labelled(finished.folder, likes(), **options)


def test_the_epoch_is_the_one_with_the_best_labels(finished: Finished, labels: Path, tmp_path: Path) -> None:
    told = list[str]()
    changes = {"evaluation.labelled": str(labels), "training.monitor": "AUC", "training.epochs": 4}
    done = run(experiment_on(finished.log, changes), tmp_path / "run", tell=told.append)
    assert "80 rows of 40 users; do not report on these users" in "\n".join(told)
    values = [epoch.validation["AUC"] for epoch in done.fitted.epochs if epoch.validation is not None]
    assert len(values) == 4
    assert done.fitted.best is not None
    assert done.fitted.best.value == max(values)
    split = done.model()[1]
    log = done.experiment.data.load()
    test = read_test(labels, log.users, log.items, split.whole)
    model = done.recommender.model
    again = evaluate(model, split.train, test, done.experiment.model.length)
    assert again.value("labelled", "AUC", 0) == pytest.approx(max(values), abs=1e-6)
    with pytest.raises(UnveilError, match="validation"):  # other labels are another run
        likes().with_columns(label=1 - pl.col("label")).write_csv(labels)
        (tmp_path / "run" / "manifest.json").unlink()
        run(experiment_on(finished.log, changes), tmp_path / "run", resume=True, tell=lambda _: None)


def test_labels_choose_among_the_blend_and_its_parts(finished: Finished, labels: Path, tmp_path: Path) -> None:
    said = list[str]()
    changes = {"evaluation.labelled": str(labels), "training.monitor": "AUC", "training.blend": True}
    done = run(experiment_on(finished.log, changes), tmp_path / "run", tell=said.append)
    (line,) = [each for each in said if each.startswith("blend ")]
    values = {
        name: float(value) for name, value in re.findall(r"([\w-]+) (\d\.\d{4})", line.partition("validation:")[2])
    }
    assert values.keys() == {"blend", "sasrec", "ease", "item-knn", "markov", "popularity"}
    model, split = done.recommender.model, done.model()[1]
    assert isinstance(model, Model)
    assert values[model.name] == max(values.values())
    test = read_test(labels, done.recommender.users, done.recommender.items, split.whole)
    found = evaluate(model, split.train, test, model.config.length)
    assert found.value("labelled", "AUC", 0) == pytest.approx(values[model.name], abs=1e-4)
    with pytest.warns(UnveilWarning, match="was validated on these rows"):
        unveil.evaluate_labelled(tmp_path / "run", labels)


def test_a_tuner_has_the_labels_and_the_training_part_alone(finished: Finished, labels: Path) -> None:
    subject = Training(experiment_on(finished.log, {"evaluation.labelled": str(labels), "training.monitor": "AUC"}))
    context = subject.context((), lambda _: None)
    assert isinstance(context.validation, LabelledValidation)
    assert context.validation.sequences is context.train
    plain = Training(experiment_on(finished.log)).context((), lambda _: None)
    assert context.fingerprint != plain.fingerprint
    with pytest.raises(UnveilError, match="two validations"):
        replace(subject, truth=True).context((), lambda _: None)


@pytest.mark.parametrize(
    ("frame", "changes", "problem"),
    [
        (small_frame().select("user_id", "item_id"), {}, "own histories"),
        (likes().with_columns(label=pl.lit(0)), {}, "all labels are alike"),
        (likes().with_columns(user_id=pl.lit("nobody")), {}, "no positive is left"),
        (likes().clear(), {}, "no rows"),
        (likes(), {"training.monitor": "MRR@10"}, "no such metric"),
        (likes().filter(label=1).drop("label"), {"evaluation.candidates": "{items}"}, "no positive is left"),
    ],
)
def test_a_validation_that_says_nothing_is_refused_before_training(
    finished: Finished, tmp_path: Path, frame: pl.DataFrame, changes: dict[str, str], problem: str
) -> None:
    frame.write_csv(tmp_path / "labels.csv")
    (tmp_path / "items.txt").write_text(str(small_frame()["item_id"].max()))
    changes = {name: value.format(items=tmp_path / "items.txt") for name, value in changes.items()}
    with pytest.raises(UnveilError, match=problem):
        run(
            experiment_on(finished.log, {"evaluation.labelled": str(tmp_path / "labels.csv"), **changes}),
            tmp_path / "run",
            tell=lambda _: None,
        )
    assert not (tmp_path / "run").exists()


def test_rows_of_histories_are_skipped_if_told_so(finished: Finished, tmp_path: Path) -> None:
    own = small_frame().select("user_id", "item_id", label=pl.lit(1)).head(3)
    pl.concat([likes().cast({"label": pl.Int32}), own.cast({"label": pl.Int32})]).write_csv(tmp_path / "labels.csv")
    changes = {"evaluation.labelled": str(tmp_path / "labels.csv"), "evaluation.seen": "skip"}
    experiment = experiment_on(finished.log, changes)
    log = experiment.data.load()
    found = labelled_validation(experiment, log, experiment.data.parts(log))
    assert found is not None
    assert found.test.skipped == {"in the user's history": 3}


def test_candidates_without_a_labelled_validation_are_an_error() -> None:
    with pytest.raises(UnveilError, match="are of a labelled validation"):
        experiment_on(Path("log.csv"), {"evaluation.candidates": "items.txt"})
