"""Exposure that follows relevance: what moves, what stays, and by how much."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.estimators.toys import random_world
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.foresight import logit_moments
from unveil.simulation.world import World


def logits(world: World) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Relevance and exposure of every slot and item."""
    relevance, exposure = (f.logits(*world.slots()) for f in (world.relevance_logits, world.exposure_logits))
    return relevance.astype(float), exposure.astype(float)


def mean_exposure(world: World) -> float:
    return float(world.exposure(*world.slots()).mean(dtype=np.float64))


def test_two_items_worked_by_hand() -> None:
    """Relevance logits 3 and 1 have mean 2 and deviation 1: exposure ½ each becomes σ(±2), and its mean stays ½."""
    relevance = Factors.constant(1, 2, 1).biased(item_V=np.array([3.0, 1.0]))
    level = Factors.constant(1, 2, 1)
    world = World(relevance, level, Vocabulary("u"), Vocabulary("ab"), np.zeros(1, np.int32), 1.0, {})
    assert logit_moments(world) == pytest.approx((2, 1))
    theta = world.with_foresight(2).exposure(np.array([0]), np.array([0]))[0]
    np.testing.assert_allclose(theta, [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))], rtol=1e-5)


@settings(max_examples=20)
@given(seed=st.integers(0, 99), strength=st.floats(-3, 3).filter(lambda x: abs(x) > 1e-3))
def test_exposure_moves_by_so_many_logits_a_standard_deviation_of_relevance(seed: int, strength: float) -> None:
    world = World.builtin(WorldSpec(users=15, items=20, steps=8, shortest=2), seed)
    relevance, before = logits(world)
    _, after = logits(world.with_foresight(strength))
    moved = after - before
    expected = strength * (relevance - relevance.mean()) / relevance.std()
    np.testing.assert_allclose(moved - moved.mean(), expected, atol=1e-4)


@pytest.mark.parametrize("severity", [1.0, 1.7, 3.0])
@pytest.mark.parametrize("strength", [-2.0, 0.5, 2.0])
def test_the_mean_exposure_stays_what_it_was(severity: float, strength: float) -> None:
    world = World.builtin(WorldSpec(users=60, items=50, steps=20)).with_severity(severity)
    assert mean_exposure(world.with_foresight(strength)) == pytest.approx(mean_exposure(world), rel=0.03)
    small = random_world().with_severity(severity)  # few enough slots for all to be looked at
    assert mean_exposure(small.with_foresight(strength)) == pytest.approx(mean_exposure(small), rel=1e-4)


def test_moments_are_those_of_all_slots_and_items() -> None:
    """Users who join late are there at fewer steps."""
    world = World.builtin(WorldSpec(users=30, items=12, steps=9, shortest=1, drift=0.9), seed=3)
    assert len(np.unique(world.start_U)) > 3
    relevance, _ = logits(world)
    assert logit_moments(world) == pytest.approx((relevance.mean(), relevance.std()), rel=1e-5)


def test_the_more_foresight_the_better_what_users_are_shown() -> None:
    world = World.builtin(WorldSpec(users=60, items=50, steps=20))
    user_S, step_S = world.slots()
    gamma = world.relevance(user_S, step_S)
    shown = [world.with_foresight(strength).exposure(user_S, step_S) for strength in (-1, 0, 1, 2)]
    of_the_shown = [float((theta * gamma).sum() / theta.sum()) for theta in shown]
    assert (np.diff(of_the_shown) > 0.02).all()


def test_relevance_and_all_else_stay() -> None:
    world = random_world()
    other = world.with_foresight(1.5)
    assert other.relevance_logits is world.relevance_logits
    assert (other.users, other.items, other.severity) == (world.users, world.items, world.severity)
    assert world.with_foresight(0) is world


def test_a_world_keeps_its_foresight_and_says_so(tmp_path: Path) -> None:
    world = random_world().with_foresight(1.0).with_foresight(0.5)
    world.save(tmp_path / "world")
    loaded = World.load(tmp_path / "world")
    assert loaded.origin == {"kind": "random", "foresight": 1.5}
    assert repr(loaded) == "World(random: 12 users, 7 items, 9 steps, severity 1, foresight 1.5)"
    slots = world.slots()
    np.testing.assert_array_equal(loaded.exposure(*slots), world.exposure(*slots))
    once = random_world().with_foresight(1.5)
    np.testing.assert_allclose(loaded.exposure(*slots), once.exposure(*slots), rtol=1e-4)


@pytest.mark.parametrize("strength", [float("nan"), float("inf")])
def test_a_foresight_that_is_no_number_is_refused(strength: float) -> None:
    with pytest.raises(UnveilError, match="foresight is out of range"):
        random_world().with_foresight(strength)


def test_relevance_that_is_the_same_everywhere_cannot_be_foreseen() -> None:
    world = World.builtin(WorldSpec(users=5, items=4, steps=3, contrast=0, shortest=1))
    with pytest.raises(UnveilError, match="equally relevant"):
        world.with_foresight(1)
