"""Ratings are relevance with the stated error, and change nothing else of a draw."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World

WORLD = World.builtin(WorldSpec(users=150, items=40, steps=30), seed=2)


def drawn(noise: float | None = None, *, stars: bool = False, world: World = WORLD) -> Interactions:
    return world.log(np.random.default_rng(4), ratings_noise=noise, stars=stars)


def ratings(log: Interactions) -> np.ndarray:
    assert log.rating is not None
    return log.rating.astype(np.float64)


def liked(log: Interactions) -> np.ndarray:
    assert log.step is not None
    return WORLD.relevance_logits.logits_of(log.user, log.item, log.step)


@pytest.mark.parametrize(("noise", "stars"), [(0.0, False), (1.0, False), (3.0, True)])
def test_all_else_of_the_draw_is_as_without_ratings(noise: float, stars: bool) -> None:
    rated = drawn(noise, stars=stars)
    assert rated.rating is not None
    assert replace(rated, rating=None) == drawn()


def test_without_noise_a_rating_is_the_relevance_logit() -> None:
    log = drawn(0.0)
    np.testing.assert_allclose(ratings(log), liked(log), rtol=1e-6)


def test_the_error_has_the_stated_size_and_knows_nothing_of_relevance() -> None:
    log = drawn(0.7)
    once = np.unique(log.user.astype(np.int64) * 40 + log.item, return_index=True)[1]
    error = (ratings(log) - liked(log))[once]
    n = len(error)
    assert n > 500
    assert error.mean() == pytest.approx(0, abs=4 * 0.7 / np.sqrt(n))
    assert error.std() == pytest.approx(0.7, rel=4 / np.sqrt(2 * n))
    assert abs(np.corrcoef(error, liked(log)[once])[0, 1]) < 4 / np.sqrt(n)


def test_an_opinion_stays_when_the_item_is_taken_again() -> None:
    log = drawn(0.7)
    error = ratings(log) - liked(log)
    _, first, nth = np.unique(log.user.astype(np.int64) * 40 + log.item, return_index=True, return_inverse=True)
    assert len(first) < len(error), "some are taken again"
    np.testing.assert_allclose(error, error[first][nth], atol=1e-5)


def test_the_noise_is_the_same_luck_at_any_size() -> None:
    one, two = (ratings(drawn(noise)) - liked(drawn()) for noise in (1.0, 2.0))
    np.testing.assert_allclose(two, 2 * one, atol=1e-5)


def test_stars_are_the_nearest_of_five() -> None:
    fine, stars = ratings(drawn(1.0)), ratings(drawn(1.0, stars=True))
    assert set(np.unique(stars)) <= {1, 2, 3, 4, 5}
    inside = (fine > 1) & (fine < 5)
    assert (np.abs(stars - fine)[inside] <= 0.5).all()
    assert (stars[fine >= 5] == 5).all()
    assert (stars[fine <= 1] == 1).all()


def test_a_centre_that_the_fit_took_away_is_given_back() -> None:
    centred = replace(WORLD, origin={"kind": "fitted", "settings": {"centre": 3.5}})
    np.testing.assert_allclose(ratings(drawn(0.0, world=centred)), liked(drawn()) + 3.5, rtol=1e-6)


@pytest.mark.parametrize("noise", [-0.1, float("nan"), float("inf")])
def test_an_error_that_is_no_size_is_refused(noise: float) -> None:
    with pytest.raises(UnveilError, match="ratings_noise: out of range"):
        drawn(noise)
