import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.pages import faults
from tests.simulation.rated import rated
from unveil.data.writers import write
from unveil.simulation.world import World

QUICK = ("--steps", 20, "--set", "width=3", "--set", "sweeps=6", "--set", "burn_in=3")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write(rated(), tmp_path / "log.csv")
    return tmp_path / "log.csv"


def test_a_world_is_fitted_described_and_drawn(unveil: Command, log: Path, tmp_path: Path) -> None:
    done = unveil("world", "fit", log, "-o", tmp_path / "world", *QUICK, "--set", "exposure.width=2")
    assert done.code == 0, done.err
    for words in ("MSE of ratings", "AUC of exposure", "predicting the mean", "biases alone", "recipe 'posterior'"):
        assert words in done.out
    world = World.load(tmp_path / "world")
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
