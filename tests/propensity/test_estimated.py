"""Propensities estimated from a log alone: each is right, more or less, where its assumption holds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.propensity.scenes import ITEMS, STEPS, USERS, Scene, alike, fading, personal, scene, seasons
from tests.propensity.test_popularity import BY_HAND, at
from unveil.errors import UnveilError
from unveil.propensity.build import build, caveats
from unveil.propensity.factors import Factors
from unveil.propensity.impressions import ImpressionGroups
from unveil.propensity.joint import RatedStatic, RatedTemporal
from unveil.propensity.popularity import (
    DampedStatic,
    DampedTemporal,
    StaticPopularity,
    TemporalPopularity,
    Timing,
    precision,
)

SHOWN_V = np.random.default_rng(7).normal(size=ITEMS)


@pytest.fixture(scope="module")
def seasonal() -> Scene:
    """Exposure that moves and is the same for all users; tastes that keep still."""
    rng = np.random.default_rng(2)
    return scene(personal(rng, sd=1.5), seasons(rng, sd=1.0).biased(item_V=0.7 * SHOWN_V - 1))


@pytest.fixture(scope="module")
def tastes() -> Scene:
    """Exposure of each user's own, and tastes too."""
    rng = np.random.default_rng(1)
    relevance = personal(rng, sd=1.0).biased(item_V=0.5 * rng.normal(size=ITEMS) + 4)
    return scene(relevance, personal(rng, sd=1.0).biased(item_V=SHOWN_V - 1))


@pytest.fixture(scope="module")
def shifting() -> Scene:
    """Exposure of each user's own that moves, and so rare that what is taken is not the favourites alone."""
    rng = np.random.default_rng(2)
    relevance = personal(rng, sd=0.7).biased(item_V=rng.normal(size=ITEMS) + 5)
    return scene(relevance, fading(rng, sd=2.5).biased(item_V=0.7 * SHOWN_V - 1.5))


def moving(log_theta: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(log_theta - log_theta.mean(1, keepdims=True))


class TestDamped:
    @pytest.mark.parametrize("kind", ["static", "temporal"])
    @pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0])
    def test_it_is_popularity_to_that_power(self, seasonal: Scene, kind: str, exponent: float) -> None:
        plain, _ = seasonal.theta(seasonal.model(f"popularity-{kind}"))
        damped, _ = seasonal.theta(seasonal.model(f"damped-{kind}", exponent=exponent))
        np.testing.assert_allclose(damped - damped.max(), exponent * (plain - plain.max()), atol=1e-4)

    def test_the_most_popular_has_one(self, seasonal: Scene) -> None:
        found, _ = seasonal.theta(seasonal.model("damped-static"))
        assert found.max() == 0

    def test_what_is_added_is_in_the_largest_too(self) -> None:
        # Counts 1, 2, 3 and 0, one added to each: the largest is 4.
        expected = pytest.approx([(2 / 4) ** 0.3, (3 / 4) ** 0.3, 1.0, (1 / 4) ** 0.3])
        slots = at([0, 1, 2, 3], [3, 4, 5, 5])
        for model in (DampedStatic(add=1.0, exponent=0.3), DampedTemporal(add=1.0, exponent=0.3)):
            assert model.fit(BY_HAND)(slots).tolist() == expected

    def test_an_exponent_below_zero_is_refused(self) -> None:
        with pytest.raises(UnveilError, match=r"damped-static\.exponent: out of range"):
            DampedStatic(exponent=-0.1)


class TestTiming:
    def test_it_finds_what_moves(self, seasonal: Scene) -> None:
        found, true = seasonal.theta(seasonal.model("timing", blocks=8))
        assert alike(moving(found), moving(true)) > 0.8

    def test_static_popularity_is_not_in_it(self, seasonal: Scene) -> None:
        """Over the steps every item has the same mean, however popular it is."""
        mean_V = {
            name: np.exp(seasonal.theta(seasonal.model(name))[0]).mean((0, 1))
            for name in ("timing", "popularity-static")
        }
        spread = {name: each.std() / each.mean() for name, each in mean_V.items()}
        assert spread["popularity-static"] > 0.25
        assert spread["timing"] < 0.1

    def test_where_nothing_moves_it_says_nothing(self, tastes: Scene) -> None:
        model = Timing(blocks=8).fit(tastes.train)
        found, _ = tastes.theta(model)
        assert model.precision > 50
        assert np.ptp(found) < 0.5

    def test_the_precision_is_that_of_the_movement(self) -> None:
        rng = np.random.default_rng(0)
        expected = np.full((40, 50), 20.0)
        for true in (1.0, 10.0):
            count = rng.poisson(expected * rng.gamma(true, 1 / true, expected.shape)).astype(float)
            assert precision(count, expected) == pytest.approx(true, rel=0.3)
        assert precision(rng.poisson(expected).astype(float), expected) > 1000


class TestJoint:
    def test_exposure_that_is_everyones_is_told_from_tastes_that_keep_still(self, seasonal: Scene) -> None:
        found, true = seasonal.theta(seasonal.model("joint-temporal", blocks=8, batches=150))
        popular, _ = seasonal.theta(seasonal.model("popularity-temporal"))
        assert alike(found, true) > 0.85
        assert alike(found, true) > alike(popular, true) + 0.1
        assert np.exp(found).mean() == pytest.approx(np.exp(true).mean(), rel=0.25)

    def test_exposure_that_keeps_still_is_found_with_its_scale(self) -> None:
        """Told from tastes by the priors alone: in order hardly nearer than popularity, which has no scale."""
        rng = np.random.default_rng(4)
        level = Factors.constant(USERS, ITEMS, STEPS, -1.0)
        still = scene(personal(rng, sd=1.5), level.biased(item_V=SHOWN_V))
        found, true = still.theta(still.model("joint-static", batches=150))
        popular, _ = still.theta(still.model("popularity-static"))
        assert alike(found, true) > 0.7
        assert np.exp(found).mean() == pytest.approx(np.exp(true).mean(), rel=0.25)
        assert np.exp(popular).mean() < 0.4 * np.exp(true).mean()

    def test_with_ratings_personal_exposure_may_move(self, shifting: Scene) -> None:
        found, true = shifting.theta(shifting.model("joint-rated-temporal", blocks=8, batches=150))
        popular, _ = shifting.theta(shifting.model("popularity-temporal"))
        assert alike(found, true) > 0.7
        assert alike(found, true) > alike(popular, true) + 0.3
        assert alike(moving(found), moving(true)) > 0.6
        assert np.exp(found).mean() == pytest.approx(np.exp(true).mean(), rel=0.4)

    @pytest.mark.slow
    def test_with_ratings_both_may_be_personal(self, tastes: Scene) -> None:
        found, true = tastes.theta(tastes.model("joint-rated-static", batches=600))
        popular, _ = tastes.theta(tastes.model("popularity-static"))
        assert alike(found, true) > 0.6
        assert alike(found, true) > alike(popular, true) + 0.2
        assert np.exp(found).mean() == pytest.approx(np.exp(true).mean(), rel=0.3)

    def test_with_ratings_it_is_nearer_than_popularity(self, tastes: Scene) -> None:
        found, true = tastes.theta(tastes.model("joint-rated-static", batches=150))
        popular, _ = tastes.theta(tastes.model("popularity-static"))
        assert alike(found, true) > alike(popular, true) + 0.1


def test_censored_is_nearer_than_popularity(tastes: Scene) -> None:
    found, true = tastes.theta(tastes.model("censored-static", batches=150))
    popular, _ = tastes.theta(tastes.model("popularity-static"))
    assert alike(found, true) > alike(popular, true) + 0.1


def test_censored_finds_what_moves_for_each_user(shifting: Scene) -> None:
    found, true = shifting.theta(shifting.model("censored-temporal", blocks=8, batches=150))
    popular, _ = shifting.theta(shifting.model("popularity-temporal"))
    assert alike(found, true) > 0.45
    assert alike(found, true) > alike(popular, true) + 0.25
    assert alike(moving(found), moving(true)) > 0.3


class TestRated:
    def test_popularity_that_is_taste_alone_is_damped_more_than_one_that_is_exposure(self) -> None:
        rng = np.random.default_rng(3)
        level = Factors.constant(USERS, ITEMS, STEPS, -1.0)
        quality = scene(personal(rng, sd=0.7).biased(item_V=rng.normal(size=ITEMS) + 4), level)
        shown = scene(personal(rng, sd=1.5).biased(item_V=np.full(ITEMS, 4.0)), level.biased(item_V=SHOWN_V))
        exponents = {}
        for name, each in (("quality", quality), ("shown", shown)):
            model = RatedStatic(each.log, batches=150).fit(each.train)
            exponents[name] = model.exponent
        found, true = shown.theta(model)
        assert exponents["shown"] > 0.5
        assert exponents["quality"] < 0.5 * exponents["shown"]
        assert alike(found, true) > 0.8

    def test_popularity_that_moves_as_exposure_does_is_kept_and_has_a_scale(self) -> None:
        rng = np.random.default_rng(3)
        level = Factors.constant(USERS, ITEMS, STEPS, -1.0)
        quality = scene(personal(rng, sd=0.7).biased(item_V=rng.normal(size=ITEMS) + 4), level)
        exposure = seasons(rng, sd=1.0).biased(item_V=0.7 * SHOWN_V - 1)
        shown = scene(personal(rng, sd=3.0, factors=8).biased(item_V=np.full(ITEMS, 4.0)), exposure)
        exponents = {}
        for name, each in (("quality", quality), ("shown", shown)):
            model = RatedTemporal(each.log, blocks=8, batches=150).fit(each.train)
            exponents[name] = model.exponent
        found, true = shown.theta(model)
        assert exponents["shown"] > 0.8
        assert exponents["quality"] < 0.25
        assert alike(found, true) > 0.85
        assert alike(moving(found), moving(true)) > 0.75
        assert np.exp(found).mean() == pytest.approx(np.exp(true).mean(), rel=0.15)

    def test_a_log_without_ratings_is_refused_with_what_to_use(self, seasonal: Scene) -> None:
        for name in ("rated-static", "censored-temporal", "joint-rated-temporal"):
            with pytest.raises(UnveilError, match=r"needs a log with ratings.*timing or joint-temporal"):
                build(name, {}, seasonal.train)

    def test_empty_ratings_are_refused(self, tastes: Scene) -> None:
        rating = np.full(len(tastes.log), np.nan, np.float32)
        with pytest.raises(UnveilError, match="needs a rating of every event"):
            build("rated-static", {}, tastes.train, log=replace(tastes.log, rating=rating))


def test_each_says_what_it_assumes_and_popularity_that_it_is_a_proxy(seasonal: Scene) -> None:
    for proxy in (StaticPopularity(), TemporalPopularity(), DampedStatic()):
        (told,) = caveats(proxy)
        assert "popularity stands in for exposure" in told
        assert "of plain training .50" in told
        assert "`unveil propensity fit`" in told
        assert "With ratings, the estimator wmf-distilled-rated needs none" in told
    (told,) = caveats(Timing())
    assert f"timing estimates it, assuming {Timing.assumes}" in told
    assert caveats(None) == []


def test_impressions_that_are_not_used_are_pointed_at() -> None:
    lists, feed = ImpressionGroups(200, 0.9, 0.8), ImpressionGroups(200, 0.1, 0.02)
    unused, proxy = caveats(TemporalPopularity(), groups=lists)
    assert "propensity.name=recorded-temporal learns exposure" in unused
    assert "popularity stands in" in proxy
    assert "propensity.name=recorded-static" in caveats(StaticPopularity(), groups=lists)[0]
    assert caveats(None, groups=lists) == []
    assert caveats(TemporalPopularity(), groups=feed) == [proxy]  # no exposure of lists is to be learnt from a feed


def test_nobody_chose_among_the_items_of_a_feed() -> None:
    lists, feed = ImpressionGroups(200, 0.9, 0.8), ImpressionGroups(200, 0.1, 0.02)
    told, assumption = caveats(Timing(), groups=feed, chosen_by="corrected")
    assert "10% of its 200 impressions without a click were shown together" in told
    assert "2% with a click, but corrected assumes a choice" in told
    assert "assuming" in assumption
    assert not any("is a feed" in each for each in caveats(Timing(), groups=lists, chosen_by="corrected"))
    assert not any("is a feed" in each for each in caveats(Timing(), groups=feed))  # weights assume no choice
