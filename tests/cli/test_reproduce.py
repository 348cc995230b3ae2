"""The options of a question on semi-synthetic data, as a plan; and fig1 on files in the form of ml-1m's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Command
from tests.studies.test_fig1 import TITLES, trilogy_log
from unveil.cli.reproduce import ALONG, BeyondOptions, UnbiasedOptions
from unveil.models.tensor_factorization.recipes import RECIPES
from unveil.studies.beyond import Beyond
from unveil.studies.results import BASELINES
from website.commands import commands


def test_each_severity_is_asked_for_once_and_in_order(unveil: Command, tmp_path: Path) -> None:
    """A slope over a severity that stands there twice would be no number."""
    given = ("--data", "builtin", "--preset", "quick", "--replicates", 1, "--jobs", 1, "--estimators", "naive")
    small = ("--set", "model.width=8", "--set", "training.epochs=1", "--set", "training.validate_every=1")
    severities = ("--severity", 4, "--severity", 1, "--severity", 4)
    done = unveil("reproduce", "rq2", "-o", tmp_path / "out", *severities, *given, *small)
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "out" / "results.json").read_text())["severities"] == [1.0, 4.0]


def test_arms_with_estimated_propensities_are_trained(unveil: Command, tmp_path: Path) -> None:
    given = ("--data", "builtin", "--preset", "quick", "--replicates", 1, "--worlds", 1, "--severity", 2, "--jobs", 1)
    small = ("--set", "model.width=8", "--set", "training.epochs=1", "--set", "training.validate_every=1")
    done = unveil(
        *("reproduce", "beyond", "--estimators", "naive,corrected,ideal", "-o", tmp_path / "out", *given, *small)
    )
    assert done.code == 0, done.err
    arms = json.loads((tmp_path / "out" / "results.json").read_text())["estimators"]
    assert arms == ["naive", "corrected", "ideal", "corrected@popularity"]


def test_the_help_says_what_is_trained() -> None:
    beyond = commands()["reproduce beyond"]
    said = {each.name: each.help or "" for each in beyond.params}
    assert "once more with each of --estimated" in said["estimators"]
    assert "corrected@popularity" in said["estimated"]
    study = Beyond(**BeyondOptions(output=Path("out")).settings(), severities=ALONG)
    trainings = sum(cell.at["estimator"] not in BASELINES for cell in study.cells())
    assert f"By default these are {trainings:,} trainings" in str(beyond.help)


@pytest.mark.parametrize("command", ["advise", "reproduce rq1", "reproduce beyond"])
def test_the_help_says_what_each_way_to_fit_a_world_is(command: str) -> None:
    said = next(each.help for each in commands()[command].params if each.name == "fit")
    assert all(f"{name} (" in said for name in RECIPES)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("beyond", "--estimators", "naive"), "--estimators: a gap has two ends: found 'naive'"),
        (("beyond", "--estimators", "itps,ideal"), "--estimators: a gap has two ends"),
        (("recipe", "--estimators", "itps@popularity"), "--estimators: a gain is over naive"),
        (("rq1", "--estimators", "naive,itps+clip=abc"), "itps.clip: not a valid value: found 'abc'"),
        (("beyond", "--estimators", "naive,itps+exponent=x,ideal"), "itps.exponent: not a valid value: found 'x'"),
        (("rq2", "--set", "itps:estimator.clip=abc"), "itps.clip: not a valid value: found 'abc'"),
        (("assumptions", "--severities", "abc"), "--severities: not numbers: found 'abc'"),
        (("assumptions", "--foresights", "0,x"), "--foresights: not numbers: found '0,x'"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_a_folder_is_made(
    unveil: Command, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    given = ("-o", tmp_path / "out", "--data", "builtin", "--preset", "quick", "--replicates", 1)
    assert says in unveil("reproduce", *words, *given).failure()
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ratings.dat, movies.dat (latin-1), and the pairs of ids of a log that was renumbered."""
    folder, log = tmp_path_factory.mktemp("ml"), trilogy_log(tied=True)
    assert log.time is not None
    rows = zip(log.user + 1, 1000 + log.item, 970_000_000 + log.time // 1_000_000, strict=True)
    lines = [f"{user}::{item}::4::{time}" for user, item, time in rows]
    (folder / "ratings.dat").write_text("\n".join(np.random.default_rng(0).permutation(lines)) + "\n")
    titles = [*TITLES[:-1], "Misérables, Les (1995)"]
    movies = [f"{1000 + n}::{title}::Drama" for n, title in enumerate(titles)]
    (folder / "movies.dat").write_bytes(("\n".join(movies) + "\n").encode("latin-1"))
    return folder


def test_fig1_from_the_papers_files_to_a_page(data: Path, unveil: Command, tmp_path: Path) -> None:
    arguments = ["reproduce", "fig1", data / "ratings.dat", "--titles", data / "movies.dat", "-o", tmp_path / "fig1"]
    done = unveil(*arguments, "--draws", 3)
    assert done.code == 0, done.err
    assert "Godfather: Part III, The (1990)" in done.out
    assert f"open {tmp_path / 'fig1' / 'index.html'}" in done.out
    assert sorted(path.name for path in (tmp_path / "fig1").iterdir()) == [
        "README.md",
        "about.json",
        "cells",
        "figures",
        "index.html",
        "items.csv",
        "results.csv",
        "results.json",
        "results.parquet",
        "run.json",
    ]
    assert "another run: cells.draws was 3 and is now 50" in unveil(*arguments).failure()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--items", "Godfahter"], "The nearest titles: Godfather"),
        (["--titles", "nowhere.dat"], "nowhere.dat: cannot be read"),
        (["--title-ids", "nowhere.txt"], "nowhere.txt: cannot be read"),
        (["--min-item", "100000"], "no events"),
    ],
)
def test_what_fig1_refuses(arguments: list[str], message: str, data: Path, unveil: Command, tmp_path: Path) -> None:
    known = ["--titles", data / "movies.dat"] if "--titles" not in arguments else []
    failure = unveil("reproduce", "fig1", data / "ratings.dat", "-o", tmp_path / "fig1", *known, *arguments).failure()
    assert message in failure
    assert not (tmp_path / "fig1").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "nothing to train on or to test on"),
        (("--log", "log.csv"), "nothing to train on or to test on"),
        (("coat", "--log", "log.csv", "--test", "test.csv"), "nothing to train on or to test on"),
        (("--data", "coat", "nowhere"), "nowhere: not the files of coat"),
        (("--data", "kuairec", "nowhere", "--metric", "MRR@10"), "not the files of kuairec"),
        (("--log", "log.csv", "--test", "test.csv", "--replicates", "0"), "replicates: out of range: found 0"),
        (("--log", "log.csv", "--test", "test.csv", "--sizes", "10.5"), "--sizes: not numbers: found '10.5'"),
        (("--log", "log.csv", "--test", "test.csv", "--sizes", "nan"), "--sizes: not numbers: found 'nan'"),
        (("--log", "log.csv", "--test", "test.csv", "--sizes", "5"), "--sizes: slices are too small: found 5"),
    ],
)
def test_people_without_exposure_bias_need_a_log_and_a_test(
    given: tuple[str, ...], message: str, unveil: Command, tmp_path: Path
) -> None:
    assert message in unveil("reproduce", "unbiased", *given, "-o", tmp_path / "out").failure()
    assert not (tmp_path / "out").exists()


def test_options_win_over_the_settings_of_known_data(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.ascii").touch()
    options: dict[str, Any] = {"folder": tmp_path, "data": "coat", "output": tmp_path}
    assert UnbiasedOptions(**options).settings().items() >= {"metric": "AUC", "sizes": [10, 30, 100]}.items()
    own = UnbiasedOptions(**options, metric="NDCG@5", sizes="20", test="else.csv", min_rating=3.0).settings()
    assert own.items() >= {"metric": "NDCG@5", "sizes": (20,), "test": "else.csv", "min_rating": 3.0}.items()


@pytest.mark.parametrize(("given", "kept"), [("truth", "truth"), ("interactions", "taken"), ("taken", "taken")])
def test_epochs_chosen_by_interactions_are_stored_as_ever(given: str, kept: str) -> None:
    assert BeyondOptions(output=Path("out"), epoch_by=given).settings()["epoch_by"] == kept
