"""The log of a world beside its truth, and logs drawn from the command line."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

from unveil.audit.exposure import rank_correlation
from unveil.cli.main import app
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.describe import WorldLog, at_severities
from unveil.simulation.world import World


def small() -> World:
    return World.builtin(WorldSpec(users=15, items=8, steps=6, shortest=3))


def test_the_truth_of_a_log_by_brute_force() -> None:
    world = small()
    truth = WorldLog.draw(world, seed=1)
    log, hits, lost = truth.log, 0, 0.0
    assert log.step is not None
    for user, item, step in zip(log.user, log.item, log.step, strict=True):
        gamma_V = world.relevance(np.array([user]), np.array([step]))[0]
        hits += int(gamma_V.argmax() == item)
        lost += float(gamma_V.max() - gamma_V[item])
    assert truth.hits == pytest.approx(hits / len(log))
    assert truth.lost == pytest.approx(lost / len(log), abs=1e-5)
    assert truth.chosen_V.sum() == truth.relevant_V.sum() == len(log)


def test_item_means_by_brute_force() -> None:
    truth = WorldLog.draw(small(), seed=1)
    assert truth.log.step is not None
    gamma_V, theta_V = truth.item_means
    np.testing.assert_allclose(gamma_V, truth.world.relevance(truth.log.user, truth.log.step).mean(0), rtol=1e-5)
    np.testing.assert_allclose(theta_V, truth.world.exposure(truth.log.user, truth.log.step).mean(0), rtol=1e-5)


def test_rank_correlation_is_spearmans() -> None:
    one, two = np.random.default_rng(0).integers(0, 9, (2, 60))
    assert rank_correlation(one, two) == pytest.approx(spearmanr(one, two).statistic)


def test_more_severe_worlds_lose_more() -> None:
    truths = at_severities(World.builtin(), seed=0)
    assert [truth.world.severity for truth in truths] == [1, 2, 3, 4]
    lost, gini = [truth.lost for truth in truths], [truth.figures.skew.gini for truth in truths]
    assert lost == sorted(lost)
    assert gini[-1] > gini[0]
    assert truths[0].hits > truths[-1].hits
    assert truths[0].effective_share > truths[-1].effective_share


def test_the_worlds_own_severity_stands_among_the_others() -> None:
    world = World.builtin(WorldSpec(users=20, items=12, steps=6, shortest=3, severity=1.5))
    assert [truth.world.severity for truth in at_severities(world, seed=0)] == [1, 1.5, 2, 3, 4]


def test_the_effective_share_by_hand() -> None:
    truth = WorldLog.draw(small(), seed=1)
    weight = [1 / theta for theta in truth.theta_N]
    assert truth.effective_share == pytest.approx(sum(weight) ** 2 / sum(w * w for w in weight) / len(weight))


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.jsonl.gz"])
def test_world_draw_writes_by_suffix(tmp_path: Path, name: str) -> None:
    command = ["world", "draw", "builtin", "-o", str(tmp_path / name), "--severity", "3", "--seed", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    expected = World.builtin(seed=2).with_severity(3).log(np.random.default_rng(2)).compact()
    read = Interactions.read(tmp_path / name)
    np.testing.assert_array_equal(read.item, expected.item)
    np.testing.assert_array_equal(read.step, expected.step)


def test_world_draw_takes_a_saved_world_and_a_choice_model(tmp_path: Path) -> None:
    world = small()
    world.save(tmp_path / "world")
    command = ["world", "draw", str(tmp_path / "world"), "-o", str(tmp_path / "log.csv"), "--choice", "categorical_all"]
    result = CliRunner().invoke(app, [*command, "--no-relevance-draw"])
    assert result.exit_code == 0, result.output
    rng = np.random.default_rng(0)
    expected = world.log(rng, "categorical_all", relevance_draw=False)
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
