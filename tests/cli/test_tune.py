import json
import socket
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Command
from tests.pages import faults
from tests.run_folders import write_log
from tests.runs.test_labelled import likes
from tests.runs.tune.studies import command, space, write_space
from tests.simulation.rated import rated
from unveil.data.writers import write
from unveil.simulation.fit import as_toml, fit_of


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


def test_from_a_log_to_a_recommender(unveil: Command, log: Path, tmp_path: Path) -> None:
    done = unveil(*command(log, write_space(tmp_path), "--trials", 2, "--replicates", 1, "-o", tmp_path / "study"))
    assert done.code == 0, done.err
    assert "mean over 1 replicate ± their standard deviation; 2 trials complete" in done.out
    first, second = done.err.splitlines()
    assert first.startswith("1/2 trials: trial 0 · heads ")
    assert " · best 0." in second
    assert "left" in first
    best = tmp_path / "study" / "best.toml"
    trained = unveil("train", log, "--config", best, "-o", tmp_path / "run")
    assert trained.code == 0, trained.err
    few = ("--trials", 1, "--replicates", 1, "-o", tmp_path / "again")
    again = unveil("tune", best, "--space", tmp_path / "space.toml", *few)
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("content", "more", "told"),
    [
        ('"model.widht" = [8, 16]', (), "Did you mean 'model.width'?"),
        ('"model.width" = []', (), "the list is empty"),
        ('"training.lr" = {low = 0.1, high = 1.0}', ("--sampler", "grid"), "a grid needs lists of values"),
        ('"model.heads" = [1, 2]', ("--storage", "nowhere"), "not a database URL"),
        ('"model.heads" = [1, 2]', ("--storage", "martian://host/db"), "cannot be used"),
        ('"model.heads" = [1, 2]', ("--storage", "sqlite:////no/such/folder/s.db"), "unable to open database file"),
        ('"model.heads" = [1, 2]', ("--truth",), "in a world only"),
        ('"model.heads" = [3]', (), "width must be a multiple of heads"),
    ],
)
def test_what_is_wrong_is_said(
    unveil: Command, log: Path, tmp_path: Path, content: str, more: tuple[str, ...], told: str
) -> None:
    assert told in unveil(*command(log, write_space(tmp_path, content), "-o", tmp_path / "s", *more)).failure()
    assert not (tmp_path / "s").exists()  # nothing that would bind the next command to a storage that cannot be used


def test_a_space_or_config_that_is_not_there(unveil: Command, log: Path, tmp_path: Path) -> None:
    assert "Did you mean 'paper'?" in unveil("tune", log, "--space", "papper", "-o", tmp_path / "s").failure()
    assert "no such config" in unveil("tune", tmp_path / "x.toml", "--space", "paper", "-o", tmp_path / "s").failure()
    (tmp_path / "empty.toml").write_text("")
    told = unveil("tune", tmp_path / "empty.toml", "--space", "paper", "-o", tmp_path / "s").failure()
    assert "the config names no log" in told


def test_a_server_that_is_not_there_is_told_soon_and_without_its_password(
    unveil: Command, log: Path, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"postgresql://me:hidden@127.0.0.1:{probe.getsockname()[1]}/db"
        begun = time.monotonic()
        told = unveil(*command(log, write_space(tmp_path), "--storage", url, "-o", tmp_path / "s")).failure()
    assert time.monotonic() - begun < 30
    assert "the study's storage cannot be used" in told
    assert "Nothing is lost" in told
    assert "hidden" not in told
    assert not (tmp_path / "s").exists()


def test_a_cluster_that_is_not_there_is_told_before_anything_is_written(
    unveil: Command, log: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'unveil[ray]'")
    more = ("--engine", "ray", "--jobs", 2, "--address", "127.0.0.1:1", "-o", tmp_path / "s")
    assert "no Ray cluster answers" in unveil(*command(log, write_space(tmp_path), *more)).failure()
    assert not (tmp_path / "s").exists()


def test_a_study_of_other_settings_is_not_joined(unveil: Command, log: Path, tmp_path: Path) -> None:
    words = ("--trials", 1, "--replicates", 1, "-o", tmp_path / "s")
    assert unveil(*command(log, write_space(tmp_path), *words)).code == 0
    told = unveil(*command(log, write_space(tmp_path), *words, "-e", "itps")).failure()
    assert "the study began with settings.estimator.name = naive, and now it is itps" in told


def test_without_optuna_the_extra_is_named(
    unveil: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("unveil.runs.tune")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'unveil[tune]'" in unveil("tune", log, "--space", "paper", "-o", tmp_path / "s").failure()


CONTENT = 'recipe = ["paper"]\n"{part}.width" = [2, 3]\n"{part}.batch" = [32, 64]\n'


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    write(rated(users=30, items=20, longest=10), tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_the_winner_is_a_config_of_world_fit(unveil: Command, ratings: Path, tmp_path: Path) -> None:
    for part in ("relevance", "exposure"):
        shared = ("--set", "steps=10", "--set", f"{part}.epochs=3", "--replicates", 1, "--sampler", "grid")
        (tmp_path / part).mkdir()
        space(tmp_path / part, CONTENT.format(part=part))
        where = ("--space", tmp_path / part / "space.toml", "-o", tmp_path / part / "study", "--seed", 4)
        done = unveil("tune", ratings, *where, *shared)
        assert done.code == 0, done.err
        assert "next: unveil world fit LOG --config" in done.out
        assert faults(page := (tmp_path / part / "study" / "index.html").read_text()) == []
        assert f"learns the {part} of a world" in page
    configs = [tmp_path / part / "study" / "best.toml" for part in ("relevance", "exposure")]
    done = unveil("world", "fit", ratings, "--config", configs[0], "--config", configs[1], "-o", tmp_path / "world")
    assert done.code == 0, done.err
    assert "recipe 'paper'" in done.out
    fit = fit_of(configs, {})
    assert (fit.seed, fit.steps, fit.relevance["epochs"], fit.exposure["epochs"]) == (4, 10, 3, 3)
    for part, config in zip(("relevance", "exposure"), configs, strict=True):
        assert getattr(fit, part) == getattr(fit_of([config], {}), part)
    assert fit_of(configs, {"relevance.width": 9}).relevance["width"] == 9


@pytest.mark.parametrize(
    ("content", "more", "says"),
    [
        ('"relevance.width" = [2]\n"exposure.width" = [2]', (), "a study is of one factorisation"),
        ('recipe = ["paper"]', (), "a study is of one factorisation"),
        ('"relevance.width" = [2]\n"model.width" = [2]', (), "model.width: not a setting of a factorisation"),
        ('recipe = ["paper", "posterior"]\n"relevance.width" = [2]', (), "a study is of one recipe"),
        ('recipe = ["papre"]\n"relevance.width" = [2]', (), "Did you mean 'paper'"),
        ('"relevance.widht" = [2]', (), "Did you mean 'width'"),
        ('"relevance.width" = [0]', (), "at least 1"),
        ('"relevance.width" = [2]', ("--prune",), "evaluated at its end only"),
        ('"relevance.width" = [2]', ("--truth",), "--truth: this option is of trainings"),
        ('"relevance.width" = [2]', ("-e", "itps"), "--estimator: this option is of trainings"),
        ('"relevance.width" = [2]', ("--set", "step=9"), "Did you mean 'steps'"),
        ('"relevance.width" = [2]', ("--set", "steps=99"), "the longest history"),
        ('"relevance.width" = [2]', ("--seed", "-1"), "seed: out of range: found -1"),
    ],
)
def test_bad_input_is_one_message(
    unveil: Command, ratings: Path, tmp_path: Path, content: str, more: tuple[str, ...], says: str
) -> None:
    space(tmp_path, content)
    where = ("-o", tmp_path / "study")
    done = unveil("tune", ratings, "--space", tmp_path / "space.toml", "--set", "steps=10", *more, *where)
    assert says in done.failure()
    assert not (tmp_path / "study").exists()


def test_configs_that_disagree_are_refused(unveil: Command, ratings: Path, tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.toml").write_text(f"seed = {seed}\nsteps = 10\n")
    configs = ("--config", tmp_path / "one.toml", "--config", tmp_path / "two.toml")
    assert "two configs differ in seed" in unveil("world", "fit", ratings, *configs, "-o", tmp_path / "world").failure()
    (tmp_path / "odd.toml").write_text("stepps = 10\n")
    said = unveil("world", "fit", ratings, "--config", tmp_path / "odd.toml", "-o", tmp_path / "world").failure()
    assert "Did you mean 'steps'" in said
    assert not (tmp_path / "world").exists()


def test_a_config_in_the_place_of_the_log_names_it(unveil: Command, ratings: Path, tmp_path: Path) -> None:
    """Of a config of trainings, what it says of the log counts."""
    (tmp_path / "data.toml").write_text(f'[data]\nlog = "{ratings}"\nmin_item = 3\n')
    space(tmp_path, '"exposure.width" = [2]')
    short = ("--set", "steps=9", "--set", "exposure.sweeps=3", "--set", "exposure.burn_in=1", "--replicates", 1)
    where = ("--space", tmp_path / "space.toml", *short)
    for name, words in (("named", [tmp_path / "data.toml"]), ("given", [ratings, "--min-item", 3])):
        done = unveil("tune", *words, *where, "-o", tmp_path / name)
        assert done.code == 0, done.err
    named, given = (json.loads((tmp_path / name / "study.json").read_text()) for name in ("named", "given"))
    assert (named["log"], named["best"]) == (given["log"], given["best"])
    (tmp_path / "data.toml").write_text("[data]\nmin_item = 3\n")
    said = unveil("tune", tmp_path / "data.toml", *where, "-o", tmp_path / "third").failure()
    assert "the config names no log" in said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("seed = -1", "seed: out of range: found -1"),
        ("[relevance]\nsway = nan", "posterior.sway"),
        ('[relevance]\nwidth = "x"', "posterior.width: not a valid value"),
        ("relevance = 3", "relevance: not a valid value"),
        ("[relevance]\nsway = 1e200", "the factors of relevance grew without bound"),
    ],
)
def test_a_bad_config_is_one_message(unveil: Command, ratings: Path, tmp_path: Path, content: str, says: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(content)
    done = unveil("world", "fit", ratings, "--config", config, "--steps", 10, "-o", tmp_path / "world")
    assert says in done.failure()
    assert not (tmp_path / "world").exists()


def test_a_world_does_not_bury_the_config_it_is_fitted_by(unveil: Command, ratings: Path, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    config = tmp_path / "study" / "best.toml"
    config.write_text("steps = 10\n")
    done = unveil("world", "fit", ratings, "--config", config, "-o", tmp_path / "study", "--overwrite")
    assert "holds what is read" in done.failure()
    assert config.exists()


def test_configs_add_up(tmp_path: Path) -> None:
    """An empty part takes nothing back, and what a world is put together with is kept."""
    one, two, three = (tmp_path / f"{name}.toml" for name in ("one", "two", "three"))
    one.write_text("severity = 2.0\n[relevance]\nwidth = 3\n")
    two.write_text("[exposure]\nwidth = 4\n[relevance]\n")
    fit = fit_of([one, two], {"real_lengths": True})
    assert (fit.severity, fit.relevance, fit.exposure) == (2.0, {"width": 3}, {"width": 4})
    three.write_text(as_toml(fit, ["relevance"], "a head"))
    again = fit_of([three], {})
    assert (again.severity, again.real_lengths, again.centre) == (2.0, True, 0.0)
    assert again.relevance["width"] == 3
    assert again.exposure == {}


def test_labels_decide_and_are_no_test(unveil: Command, log: Path, tmp_path: Path) -> None:
    """The best trial is that of the highest AUC on the labels; the page says whose users are spent."""
    likes().write_csv(tmp_path / "slice.csv")
    labelled = ("--validation", tmp_path / "slice.csv", "--set", "training.monitor=AUC")
    asked = command(log, write_space(tmp_path), "--trials", 2, "--replicates", 1, "-o", tmp_path / "study", *labelled)
    done = unveil(*asked)
    assert done.code == 0, done.err
    assert "80 rows of 40 users; do not report on these users" in done.out
    study = json.loads((tmp_path / "study" / "study.json").read_text())
    assert study["metric"] == "validation AUC"
    assert "must not be reported on" in study["judging"]
    assert "nothing may be reported on its users" in (tmp_path / "study" / "index.html").read_text()
    assert 'labelled = "' in (tmp_path / "study" / "best.toml").read_text()
    likes().with_columns(label=1 - pl.col("label")).write_csv(tmp_path / "slice.csv")
    assert "the study began with" in unveil(*asked).failure()


def test_a_leak_ends_a_search_before_it_begins(unveil: Command, log: Path, tmp_path: Path) -> None:
    asked = command(log, write_space(tmp_path), "-o", tmp_path / "study", "--validation", log)
    assert "own histories" in unveil(*asked).failure()
    assert not (tmp_path / "study").exists()


def test_labels_are_of_trainings(unveil: Command, log: Path, tmp_path: Path) -> None:
    message = unveil("tune", log, "--space", "paper-exposure", "-o", tmp_path / "s", "--validation", log).failure()
    assert "of trainings" in message
