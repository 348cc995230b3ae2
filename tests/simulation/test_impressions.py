"""Impressions are a sample of what was exposed and left, and change nothing else of a draw."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.impressions import Impressions, rate_that_leaves
from unveil.simulation.world import World

WORLD = World.builtin(WorldSpec(users=120, items=40, steps=30), seed=2)


def drawn(rate: float | None = None, *, noise: float | None = 0.5) -> Interactions:
    return WORLD.log(np.random.default_rng(4), ratings_noise=noise, impressions=rate)


@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_what_is_taken_is_the_same_log(rate: float) -> None:
    recorded = drawn(rate)
    assert recorded.clicked is not None
    assert not recorded.clicked.all()
    assert replace(recorded.interacted(), clicked=None) == drawn()


def test_what_was_left_has_a_step_and_a_propensity_and_no_rating() -> None:
    left = drawn(0.3).skipped()
    assert left.step is not None
    assert left.propensity is not None
    assert left.rating is not None
    np.testing.assert_allclose(left.propensity, WORLD.exposure_of(left.user, left.item, left.step))
    assert np.isnan(left.rating).all()
    assert drawn(0.3, noise=None).rating is None


def test_at_a_slot_an_item_stands_once() -> None:
    log = drawn(1.0)
    assert log.step is not None
    slots = np.stack([log.user, log.step, log.item])
    assert np.unique(slots, axis=1).shape == slots.shape


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_each_exposure_is_recorded_at_the_rate(rate: float) -> None:
    user_S, step_S = WORLD.slots()
    theta_SV = WORLD.exposure(user_S, step_S).astype(np.float64)
    log = drawn(rate)
    expected = rate * (theta_SV.sum() - len(log.interacted()))
    # The exposures of a draw scatter as well: θ(1 − θ) each, and what is kept of them binomially.
    deviation = np.sqrt((rate * theta_SV * (1 - rate * theta_SV)).sum())
    assert len(log.skipped()) == pytest.approx(expected, abs=4 * deviation)


def test_every_item_is_recorded_as_often_as_it_is_exposed() -> None:
    log = drawn(0.5)
    user_S, step_S = WORLD.slots()
    theta_V = WORLD.exposure(user_S, step_S).astype(np.float64).sum(0)
    left_V = np.bincount(log.skipped().item, minlength=WORLD.n_items)
    taken_V = np.bincount(log.interacted().item, minlength=WORLD.n_items)
    assert np.abs(left_V - 0.5 * (theta_V - taken_V)).max() < 5 * np.sqrt(theta_V.max())


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(UnveilError, match="impressions: out of range"):
        Impressions(rate)


@pytest.mark.parametrize("left", [0.5, 2.0])
def test_a_log_keeps_as_many_as_are_asked_for(left: float) -> None:
    taken = drawn()
    rate = rate_that_leaves(WORLD, len(taken), left)
    assert 0 < rate < 1
    log = drawn(rate)
    found, scatter = len(log.skipped()) / len(taken), np.sqrt(left / len(taken))
    # Exposures scatter too: their own deviation is that of the test above, less than five of counts by themselves.
    assert found == pytest.approx(left, abs=5 * scatter)


def test_no_more_can_be_kept_than_was_shown() -> None:
    assert rate_that_leaves(WORLD, 10, 1e9) == 1
    nobody = replace(WORLD, severity=60.0)
    assert rate_that_leaves(nobody, 1, 1.0) == 1, "next to nothing is shown"
