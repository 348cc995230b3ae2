import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from unveil.cli.main import app
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.experiment.demo import Truth, drawn, run_demo, severities
from unveil.experiment.demo_figures import rank_correlation
from unveil.experiment.demo_page import item_means
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("demo") / "out"
    return folder, run_demo(folder, seed=0)


def small() -> World:
    return World.builtin(WorldSpec(users=15, items=8, steps=6, shortest=3))


def test_the_truth_of_a_log_by_brute_force() -> None:
    world = small()
    truth = drawn(world, seed=1)
    log, hits, lost = truth.log, 0, 0.0
    assert log.step is not None
    for user, item, step in zip(log.user, log.item, log.step, strict=True):
        gamma_V = world.relevance(np.array([user]), np.array([step]))[0]
        hits += int(gamma_V.argmax() == item)
        lost += float(gamma_V.max() - gamma_V[item])
    assert truth.favourite_taken == pytest.approx(hits / len(log))
    assert truth.lost == pytest.approx(lost / len(log), abs=1e-5)
    assert truth.taken_V.sum() == truth.favourite_V.sum() == len(log)


def test_item_means_by_brute_force() -> None:
    truth = drawn(small(), seed=1)
    assert truth.log.step is not None
    gamma_V, theta_V = item_means(truth)
    np.testing.assert_allclose(gamma_V, truth.world.relevance(truth.log.user, truth.log.step).mean(0), rtol=1e-5)
    np.testing.assert_allclose(theta_V, truth.world.exposure(truth.log.user, truth.log.step).mean(0), rtol=1e-5)


def test_rank_correlation_is_spearmans() -> None:
    one, two = np.random.default_rng(0).integers(0, 9, (2, 60))
    assert rank_correlation(one, two) == pytest.approx(spearmanr(one, two).statistic)


def test_harsher_worlds_lose_more() -> None:
    truths = severities(World.builtin(), seed=0)
    assert [truth.world.severity for truth in truths] == [1, 2, 3, 4]
    lost, gini = [truth.lost for truth in truths], [truth.figures.skew.gini for truth in truths]
    assert lost == sorted(lost)
    assert gini[-1] > gini[0]
    assert truths[0].favourite_taken > truths[-1].favourite_taken


def test_the_demo_writes_page_log_and_world(demo: tuple[Path, Truth]) -> None:
    folder, truth = demo
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "log.csv", "world"]
    assert repr(World.load(folder / "world")) == repr(truth.world)
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert f"{truth.figures.interactions:,}" in html
    assert html.count("<svg") == 6


def test_the_log_on_disk_is_the_log_that_was_drawn(demo: tuple[Path, Truth]) -> None:
    folder, truth = demo
    read, drawn_log = Interactions.read(folder / "log.csv"), truth.log.compact()
    assert (read.users, read.items) == (drawn_log.users, drawn_log.items)
    for name in ("user", "item", "time", "step"):
        np.testing.assert_array_equal(getattr(read, name), getattr(drawn_log, name))
    assert read.propensity is not None
    assert drawn_log.propensity is not None
    np.testing.assert_allclose(read.propensity, drawn_log.propensity, rtol=1e-6)


def test_the_same_seed_gives_the_same_files(demo: tuple[Path, Truth], tmp_path: Path) -> None:
    run_demo(tmp_path / "again", seed=0)
    for name in ("index.html", "log.csv", "world/world.json", "world/factors.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (demo[0] / name).read_bytes()


def test_an_occupied_folder_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UnveilError, match="not empty"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_command_says_what_it_found_and_where_the_page_is(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path / "d"), "--seed", "3"])
    assert result.exit_code == 0, result.output
    assert "interactions with the user's true favourite" in result.output
    assert f"open {tmp_path / 'd' / 'index.html'}" in result.output
    assert json.loads((tmp_path / "d" / "world" / "world.json").read_text())["origin"]["seed"] == 3


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.jsonl.gz"])
def test_world_draw_writes_by_suffix(tmp_path: Path, name: str) -> None:
    command = ["world", "draw", "builtin", "-o", str(tmp_path / name), "--severity", "3", "--seed", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    expected = World.builtin(seed=2).with_severity(3).log(np.random.default_rng(2)).compact()
    read = Interactions.read(tmp_path / name)
    np.testing.assert_array_equal(read.item, expected.item)
    np.testing.assert_array_equal(read.step, expected.step)


def test_world_draw_takes_a_saved_world_and_a_choice_model(demo: tuple[Path, Truth], tmp_path: Path) -> None:
    command = ["world", "draw", str(demo[0] / "world"), "-o", str(tmp_path / "log.csv"), "--choice", "categorical_all"]
    result = CliRunner().invoke(app, [*command, "--no-relevance-draw"])
    assert result.exit_code == 0, result.output
    rng = np.random.default_rng(0)
    expected = demo[1].world.log(rng, "categorical_all", relevance_draw=False)
    np.testing.assert_array_equal(Interactions.read(tmp_path / "log.csv").item, expected.compact().item)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["builtin", "--severity", "0"], "severity is out of range"),
        (["builtin", "--choice", "rationale"], "unknown choice model"),
        (["nowhere"], "not a world"),
    ],
)
def test_world_draw_refuses_what_it_cannot_do(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["world", "draw", *arguments, "-o", str(tmp_path / "log.csv")])
    assert isinstance(result.exception, UnveilError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []
