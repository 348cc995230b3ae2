import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.conftest import Command
from tests.pages import faults
from tests.run_folders import TINY, options
from tests.simulation.rated import rated
from unveil.data.interactions import Interactions
from unveil.data.writers import write
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World

QUICK = ("--steps", 20, "--set", "width=3", "--set", "sweeps=6", "--set", "burn_in=3")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write(rated(), tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_a_world_is_fitted_described_and_drawn(unveil: Command, log: Path, tmp_path: Path) -> None:
    done = unveil("world", "fit", log, "-o", tmp_path / "world", *QUICK, "--set", "exposure.width=2")
    assert done.code == 0, done.err
    world = World.load(tmp_path / "world")
    assert "'posterior'" in done.out
    for task in ("relevance", "exposure"):
        for predictor in ("mean", "bias_only", "recipe", "world"):
            assert f"{world.origin[task][predictor]['test']:.4f}" in done.out
    page = (tmp_path / "world" / "index.html").read_text()
    assert faults(page) == []
    for task in ("relevance", "exposure"):
        assert f"{world.origin[task]['world']['test']:.4f}" in page
    assert {path.stem for path in (tmp_path / "world" / "figures").iterdir()} == {"by-step", "exposure-shares"}
    assert [world.origin["settings"][task]["width"] for task in ("relevance", "exposure")] == [3, 2]
    described = unveil("world", "describe", tmp_path / "world")
    assert described.out.strip() in done.out
    drawn = unveil("world", "draw", tmp_path / "world", "-o", tmp_path / "drawn.csv")
    assert drawn.code == 0, drawn.err


def test_the_description_as_json_is_the_description(unveil: Command) -> None:
    figures = json.loads(unveil("world", "describe", "builtin", "--json", "--severity", 3).out)
    assert (figures["users"], figures["items"], figures["severity"]) == (600, 300, 3.0)
    assert figures["origin"]["kind"] == "builtin"
    assert figures["favourites"] == World.builtin().describe().favourites
    table = unveil("world", "describe", "builtin").out
    assert "The built-in world, seed 0." in table
    assert f"{figures['favourites']}" in table


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--rating-col", "nothing"), "nothing"),
        (("--steps", 21), "expected 1 to 20 steps, the longest history"),
        (("--steps", 20, "--recipe", "papre"), "Did you mean 'paper'"),
        (("--steps", 20, "--set", "width=many"), "expected a whole number"),
        (("--steps", 20, "--set", "relevanse.width=3"), "Did you mean 'relevance'"),
        (("--steps", 20, "--negatives", 99), "more negatives than items"),
        (("--steps", 20, "--severity", 0), "severity"),
    ],
)
def test_bad_input_is_one_message(
    unveil: Command, log: Path, tmp_path: Path, options: tuple[object, ...], says: str
) -> None:
    assert says in unveil("world", "fit", log, "-o", tmp_path / "world", *options).failure()
    assert not (tmp_path / "world").exists()


def test_a_log_without_ratings_says_what_to_do(unveil: Command, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("user,item\n" + "".join(f"u{n % 5},i{n}\n" for n in range(40)))
    message = unveil("world", "fit", tmp_path / "pairs.csv", "-o", tmp_path / "world").failure()
    assert "relevance cannot be told from exposure" in message
    assert "--rating-col" in message


def test_what_is_there_is_kept_unless_told_otherwise(unveil: Command, log: Path, tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "precious").touch()
    assert "not empty" in unveil("world", "fit", log, "-o", tmp_path / "world", *QUICK).failure()
    assert (tmp_path / "world" / "precious").exists()
    assert unveil("world", "fit", log, "-o", tmp_path / "world", *QUICK, "--overwrite").code == 0
    assert World.load(tmp_path / "world").n_users == 60


def test_describing_what_is_no_world_is_one_message(unveil: Command, tmp_path: Path) -> None:
    assert "not a world" in unveil("world", "describe", tmp_path).failure()


TRAINING = options({**TINY, "training.epochs": 1})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "world"
    World.builtin(WorldSpec(users=40, items=30, steps=15, severity=1.5), seed=5).save(folder)
    return folder


def test_a_log_says_at_which_step_and_how_likely(unveil: Command, saved: Path, tmp_path: Path) -> None:
    done = unveil("world", "draw", saved, "-o", tmp_path / "log.csv", "--seed", 3)
    assert done.code == 0, done.err
    log, world = Interactions.read(tmp_path / "log.csv"), World.load(saved)
    assert log.step is not None
    assert log.propensity is not None
    part = world.aligned_with(log)
    np.testing.assert_allclose(part.exposure_of(log.user, log.item, log.step), log.propensity, rtol=1e-5)
    assert len(log) == len(world.log(np.random.default_rng(3)))
    assert "save-world" not in done.out


def test_a_log_of_another_severity_trains_with_the_world_it_was_drawn_from(
    unveil: Command, saved: Path, tmp_path: Path
) -> None:
    log, world = tmp_path / "log.csv", tmp_path / "harsh"
    asked = ("--severity", 3, "--foresight", 0.5)
    done = unveil("world", "draw", saved, "-o", log, *asked, "--save-world", world)
    assert done.code == 0, done.err
    assert f"unveil train {log} --world {world}" in done.out
    assert "severity 3, foresight 0.5" in done.out
    about = json.loads((world / "world.json").read_text())
    assert (about["severity"], about["origin"]["foresight"]) == (3, 0.5)
    for estimator in ("itps", "ideal"):
        done = unveil("train", log, "-o", tmp_path / estimator, "-e", estimator, "--world", world, *TRAINING)
        assert done.code == 0, done.err
    assert "proxy" not in done.out


def test_with_the_world_as_it_was_saved_the_message_says_what_to_do(
    unveil: Command, saved: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    done = unveil("world", "draw", saved, "-o", log, "--severity", 3)
    assert done.out.splitlines()[-1] == "its world is not saved: to train on true relevance, draw with --save-world DIR"
    told = unveil("train", log, "-o", tmp_path / "run", "-e", "itps", "--world", saved, *TRAINING).failure()
    assert "it was drawn at severity 3, and the world has 1.5" in told
    assert "--save-world DIR" in told
    assert not (tmp_path / "run").exists()


def test_noisy_propensities_are_trained_with(unveil: Command, saved: Path, tmp_path: Path) -> None:
    assert unveil("world", "draw", saved, "-o", tmp_path / "log.csv").code == 0
    noisy = options({"propensity.name": "noisy-temporal", "propensity.sd": 0.5})
    arguments = ["train", tmp_path / "log.csv", "-e", "itps", "--world", saved, *TRAINING]
    done = unveil(*arguments, "-o", tmp_path / "noisy", *noisy)
    assert done.code == 0, done.err
    assert "itps, weighted by noisy-temporal" in done.out
    assert unveil(*arguments, "-o", tmp_path / "true").code == 0
    weights = [json.loads((tmp_path / run / "about.json").read_text())["weights"] for run in ("true", "noisy")]
    assert weights[0]["slots"] == weights[1]["slots"]
    assert weights[0]["spread"] < weights[1]["spread"]
    nonsense = options({"propensity.name": "noisy-temporal", "propensity.sd": -1})
    assert "noisy-temporal.sd: out of range" in unveil(*arguments, "-o", tmp_path / "x", *nonsense).failure()


def events(path: Path) -> pl.DataFrame:
    return pl.read_csv(path).select("user_id", "item_id", "step")


def test_options_change_the_log_as_they_say(unveil: Command, saved: Path, tmp_path: Path) -> None:
    def drawn(name: str, *asked: object) -> pl.DataFrame:
        assert unveil("world", "draw", saved, "-o", tmp_path / name, *asked).code == 0
        return events(tmp_path / name)

    usual, every = drawn("usual.csv"), drawn("every.csv", "--no-relevance-draw")
    assert len(every) > len(usual)
    assert len(usual.join(every, on=usual.columns, how="semi")) == len(usual)  # the same luck
    assert not drawn("chance.csv", "--choice", "categorical_exposed").equals(usual)
    assert not drawn("foreseen.csv", "--foresight", 2).equals(usual)
    assert drawn("again.csv").equals(usual)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--severity", "0"], "the severity is out of range: found 0.0, expected a number above 0"),
        (["--severity", "-1"], "the severity is out of range"),
        (["--severity", "nan"], "the severity is out of range: found nan"),
        (["--foresight", "inf"], "the foresight is out of range: found inf"),
        (
            ["--severity", "2000"],
            "there are no interactions in World(builtin: 40 users, 30 items, 15 steps, severity 2000)",
        ),
        (["--choice", "rational_exposd"], "Did you mean 'rational_exposed'?"),
        (["--save-world", "."], "not empty"),
    ],
)
def test_what_cannot_be_drawn_is_said_before_anything_is_written(
    unveil: Command, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").touch()
    assert told in unveil("world", "draw", saved, "-o", tmp_path / "log.csv", *asked).failure()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_is_no_world_is_said(unveil: Command, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user_id,item_id\na,b\n")
    for place in ("log.csv", "nowhere", "."):
        told = unveil("world", "draw", tmp_path / place, "-o", tmp_path / "new.csv").failure()
        assert "not a world: expected a folder with a world.json" in told


def test_a_world_that_does_not_say_how_it_was_fitted_is_damaged(unveil: Command, saved: Path, tmp_path: Path) -> None:
    World.load(saved).save(tmp_path / "world")
    about = tmp_path / "world" / "world.json"
    content = {name: each for name, each in json.loads(about.read_text()).items() if name != "seal"}
    about.write_text(json.dumps(content | {"origin": {"kind": "fitted"}}))
    told = unveil("world", "describe", tmp_path / "world").failure()
    assert "a damaged world: it does not say how it was fitted ('recipe')" in told
    assert json.loads(unveil("world", "describe", tmp_path / "world", "--json").out)["origin"] == {"kind": "fitted"}


def test_a_world_that_shows_nothing_is_described_in_numbers(unveil: Command, saved: Path) -> None:
    told = unveil("world", "describe", saved, "--severity", 1e9, "--json").out
    assert json.loads(told, parse_constant=pytest.fail)["exposure_gini"] == 0


def test_the_built_in_world_of_another_seed_can_be_kept(unveil: Command, tmp_path: Path) -> None:
    done = unveil("world", "draw", "builtin", "-o", tmp_path / "log.parquet", "--seed", 2)
    assert "draw with --save-world DIR" in done.out
    asked = ("--seed", 2, "--save-world", tmp_path / "world", "--overwrite")
    assert unveil("world", "draw", "builtin", "-o", tmp_path / "log.parquet", *asked).code == 0
    assert World.load(tmp_path / "world").origin["seed"] == 2


def test_a_log_with_impressions_is_the_same_log_with_rows_more(unveil: Command, saved: Path, tmp_path: Path) -> None:
    for name, asked in (("plain", ()), ("shown", ("--impressions", 0.2))):
        assert unveil("world", "draw", saved, "-o", tmp_path / f"{name}.csv", *asked).code == 0
    plain, shown = (Interactions.read(tmp_path / f"{name}.csv") for name in ("plain", "shown"))
    assert len(shown) > len(plain)
    taken = shown.interacted().compact()
    assert all(np.array_equal(taken.columns()[name], column) for name, column in plain.columns().items())
    refused = ("world", "draw", saved, "-o", tmp_path / "no.csv", "--impressions", 0)
    assert "impressions: out of range" in unveil(*refused).failure()
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "inter", "parquet"])
def test_what_was_taken_is_rated_and_what_was_left_is_not(
    unveil: Command, saved: Path, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"log.{suffix}"
    assert unveil("world", "draw", saved, "-o", file, "--impressions", 0.2, "--ratings").code == 0
    log = Interactions.read(file)
    assert log.rating is not None
    assert log.clicked is not None
    assert 0 < log.clicked.mean() < 1
    assert np.array_equal(np.isfinite(log.rating), log.clicked)


def test_a_log_with_ratings_is_the_same_log_with_a_column_more(unveil: Command, saved: Path, tmp_path: Path) -> None:
    for name, asked in (("plain", ()), ("rated", ("--ratings", "--ratings-noise", 0.5)), ("stars", ("--stars",))):
        assert unveil("world", "draw", saved, "-o", tmp_path / f"{name}.csv", *asked).code == 0
    plain, rated, stars = (Interactions.read(tmp_path / f"{name}.csv") for name in ("plain", "rated", "stars"))
    assert plain.rating is None
    for log in (rated, stars):
        assert log.rating is not None
        assert {**log.columns(), "rating": None}.keys() == {*plain.columns(), "rating"}
        assert all(np.array_equal(log.columns()[name], column) for name, column in plain.columns().items())
    assert stars.rating is not None
    assert set(np.unique(stars.rating)) <= {1, 2, 3, 4, 5}
    refused = ("world", "draw", saved, "-o", tmp_path / "no.csv", "--ratings", "--ratings-noise", -1)
    assert "ratings_noise: out of range" in unveil(*refused).failure()
