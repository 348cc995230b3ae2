import socket
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.run_folders import write_log
from tests.runs.tune.studies import command, write_space


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv")


def test_from_a_log_to_a_recommender(unveil: Command, log: Path, tmp_path: Path) -> None:
    done = unveil(*command(log, write_space(tmp_path), "--trials", 2, "--replicates", 1, "-o", tmp_path / "study"))
    assert done.code == 0, done.err
    assert "mean over 1 replicate ± their standard deviation; 2 trials complete" in done.out
    first, second = done.err.splitlines()
    assert first.startswith("1/2 trial 0 · heads ")
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
    for name in [name for name in sys.modules if name.startswith("unveil.runs.tune.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'unveil[tune]'" in unveil("tune", log, "--space", "paper", "-o", tmp_path / "s").failure()
