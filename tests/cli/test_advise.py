from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.simulation.rated import rated
from unveil.data.sinks import write

SMALL = (
    *("--users", 30, "--steps", 10, "--replicates", 1, "--choices", "rational_exposed", "--severities", "1"),
    *("--estimators", "corrected", "--propensities", "popularity", "--clips", "none", "--jobs", 1),
    *("--set", "model.width=8", "--set", "training.epochs=1", "--set", "training.validate_every=1"),
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write(rated(), tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_advice_and_a_run_by_it(unveil: Command, log: Path, tmp_path: Path) -> None:
    done = unveil("advise", log, "-o", tmp_path / "advice", *SMALL)
    assert done.code == 0, done.err
    assert "4 trainings on 1 drawn logs" in done.err
    assert "Use the naive loss" in done.out
    config = tmp_path / "advice" / "advice.toml"
    trained = unveil("train", log, "--config", config, "-o", tmp_path / "run")
    assert trained.code == 0, trained.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--effort", "quik"), "Did you mean 'quick'"),
        (("--estimators", "corected"), "Did you mean 'corrected'"),
        (("--propensities", "populrity"), "Did you mean 'popularity'"),
        (("--clips", "5"), "a share of the events"),
        (("--severities", "one"), "numbers with commas"),
        (("--choices", "rational"), "choice model"),
        (("--implicit", "1.5"), "between 0 and 1"),
        (("--replicates", 0), "at least 1"),
    ],
)
def test_mistakes_are_one_message(
    unveil: Command, log: Path, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    assert says in unveil("advise", log, "-o", tmp_path / "advice", *SMALL, *options).failure()
