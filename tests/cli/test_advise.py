import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.audit.logs import generated
from tests.cli.conftest import Command
from tests.simulation.rated import rated
from unveil.cli.advise import clips_in
from unveil.cli.main import app
from unveil.cli.options import named_in, numbers_in
from unveil.data.writers import write
from unveil.errors import UnveilError
from unveil.simulation.choice import CHOICES
from website.commands import commands

RUN = CliRunner()


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    generated(users=60).to_frame().rename({"user": "user_id", "item": "item_id", "time": "timestamp"}).write_csv(path)
    return path


def test_a_verdict_five_figures_and_a_page(csv: Path, tmp_path: Path) -> None:
    page, titles = tmp_path / "audit.html", tmp_path / "titles.csv"
    titles.write_text("id,title\n" + "".join(f"{n:04d},Film {n}\n" for n in range(60)))
    asked = ["audit", str(csv), "-o", str(page), "--min-item", "2", "--titles", str(titles)]
    done = RUN.invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 0
    assert "of 60 users with 59 items" in " ".join(done.output.split())
    said = " ".join(done.output.split())
    assert "Mind: Only popularity" in said
    assert "".join(f"Do next: `unveil train {csv} -o run -e naive`".split()) in "".join(said.split())
    assert "clicks on items shown at random would tell two models apart" in said
    assert f"open {page}" in done.output
    assert json.loads(page.with_suffix(".json").read_text())["log"]["users"] == 60
    assert "log.csv: " in page.read_text()
    assert "Film " in page.read_text()
    with pytest.raises(UnveilError, match="there already"):
        RUN.invoke(app, ["audit", str(csv), "-o", str(page)], catch_exceptions=False)


@pytest.mark.parametrize("content", ["", "user_id,item_id,timestamp\n"])
def test_an_empty_file_is_refused_and_nothing_is_written(content: str, tmp_path: Path) -> None:
    log, page = tmp_path / "log.csv", tmp_path / "audit.html"
    log.write_text(content)
    with pytest.raises(UnveilError):
        RUN.invoke(app, ["audit", str(log), "-o", str(page)], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == [log]


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
    assert "4 trainings on 1 drawn log, 4 left" in done.err
    assert "No advice yet: with one world and one draw" in done.out
    config = tmp_path / "advice" / "advice.toml"
    trained = unveil("train", log, "--config", config, "-o", tmp_path / "run")
    assert trained.code == 0, trained.err


def test_advice_by_rows_shown_at_random(unveil: Command, log: Path, tmp_path: Path) -> None:
    rng, shown = np.random.default_rng(0), tmp_path / "shown.csv"
    frame = pl.read_csv(log).with_columns(clicked=1, is_rand=0)
    random = frame.with_columns(
        item_id=frame["item_id"].shuffle(seed=0), clicked=pl.Series(rng.integers(0, 2, len(frame))), is_rand=1
    )
    pl.concat([frame, random], how="vertical_relaxed").write_csv(shown)
    tiny = ("--estimators", "wmf-distilled", "--replicates", 1, "--jobs", 1, *SMALL[-6:])
    done = unveil("advise", shown, "-o", tmp_path / "advice", *tiny)
    assert done.code == 0, done.err
    assert "No simulated world was used." in " ".join(done.out.split())
    assert (tmp_path / "advice" / "advice.toml").is_file()
    refused = unveil("advise", shown, "-o", tmp_path / "other", "--worlds", 2)
    assert "--worlds: where a test judges there is no simulated world" in refused.failure()
    assert "Name it with --test" in unveil("advise", log, "-o", tmp_path / "other", "--metric", "AUC").failure()
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--effort", "quik"), "Did you mean 'quick'"),
        (("--estimators", "corected"), "Did you mean 'corrected'"),
        (("--propensities", "populrity"), "Did you mean 'popularity'"),
        (("--propensities", "known"), "--propensities known: cannot be had from this log: the propensity 'known-"),
        (("--propensities", "logged", "--estimators", "itps"), "--propensities logged: cannot be had from this log"),
        (("--propensities", "logged"), "--propensities logged: no estimator that is tried can use this propensity"),
        (("--clips", "5"), "--clips: not a valid value: found '5', expected a share of the events"),
        (("--clips", "0%"), "--clips: not a valid value: found '0%', expected a share of the events"),
        (("--severities", "one"), "--severities: not numbers: found 'one', expected numbers with commas"),
        (("--severities", ""), "there is no scenario to try"),
        (("--severities", "1,1.0000001"), "--severities: too near to be told apart: found '1.0 and 1.0000001'"),
        (("--implicit", "0.5,0.50000001"), "--implicit: too near to be told apart"),
        (("--implicit", "0.5", "--world", "builtin"), "--implicit: a world that is given has a liking of its own"),
        (("--estimators", "itps+clip=5%"), "--estimators: estimators are named alone here: found 'itps+clip=5%'"),
        (("--propensities", ""), "--propensities: no propensity is named"),
        (("--choices", "rational"), "Did you mean 'rational_all' or 'rational_exposed'?"),
        (("--implicit", "1.5"), "--implicit: out of range: found 1.5, expected a share between 0 and 1"),
        (("--implicit", "half"), "--implicit: not numbers: found 'half'"),
        (("--replicates", 0), "at least 1"),
        (("--users", 0), "users: out of range: found 0, expected at least 1"),
        (("--impressions", 0.1), "--impressions: the log has too few impressions without a click for this to matter"),
        (("--world", "nothere"), "nothere: not a world: expected a folder with a world.json"),
        (("--set", "corrected:estimator.strength=x"), "corrected.strength: not a valid value: found 'x'"),
        (("--set", "estimator.strength=1"), "unknown option of the estimator 'naive'"),
    ],
)
def test_mistakes_are_one_message(
    unveil: Command, log: Path, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    assert says in unveil("advise", log, "-o", tmp_path / "advice", *SMALL, *options).failure()
    assert not (tmp_path / "advice").exists()


def test_a_world_that_is_none_is_the_same_to_all(unveil: Command, log: Path, tmp_path: Path) -> None:
    words = (log, "--world", tmp_path / "nothere", "-o", tmp_path / "out")
    assert unveil("advise", *words).failure() == unveil("propensity", "score", *words).failure()


def test_the_help_says_what_an_effort_does() -> None:
    said = {each.name: each.help or "" for each in commands()["advise"].params}
    for name in ("estimators", "propensities", "clips", "choices", "severities", "replicates", "worlds", "users"):
        assert "(quick) or " in said[name]
    assert "By default 3 (quick) or 1 (thorough)." in said["replicates"]
    assert "By default 5% (quick) or none, 2%, 10% (thorough)." in said["clips"]
    assert "joint-rated (quick) or all (thorough)." in said["propensities"]
    assert "half an hour to an hour of one core for ml-100k" in said["effort"]
    assert all(name in said["choices"].partition("By default")[0] for name in CHOICES)


def test_what_is_said_twice_is_tried_once() -> None:
    assert clips_in("none,5%,5.0%,0,0.5%") == ("", "5%", "0.5%")
    assert numbers_in("1,1.0,3", "--severities") == (1.0, 3.0)
    assert named_in("itps, itps,wmf-distilled") == ("itps", "wmf-distilled")
