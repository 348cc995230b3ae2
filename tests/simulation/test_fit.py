"""Worlds behind a log without ratings: the split by hand, and that nothing is lost by it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.simulation.rated import rated
from unveil.data.filters import Filters
from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError
from unveil.propensity.factors import Factors
from unveil.simulation.fit import Fit, fit_world, implicit_worlds, observed, relevance
from unveil.simulation.world import World

QUICK = {"width": 4, "sweeps": 40, "burn_in": 20}


@pytest.fixture(scope="module")
def fitted() -> World:
    return fit_world(rated(users=150, seed=1), Fit(steps=20, relevance=QUICK, exposure=QUICK))


def scores(world: World, part: str) -> dict[str, float]:
    """On the tuples for test."""
    return {name: world.origin[part][name]["test"] for name in ("mean", "bias_only", "recipe", "world")}


def test_tuples_are_the_last_events_of_each_user_aligned_at_the_end() -> None:
    log = rated()
    tuples, histories = observed(log, 15), Sequences.of(log)
    assert log.rating is not None
    for user in range(len(log.users)):
        mine = tuples.user_N == user
        last = histories.history(user)[-15:]
        assert tuples.item_N[mine].tolist() == last.tolist()
        assert tuples.step_N[mine].tolist() == list(range(15 - len(last), 15))
        rows = histories.event_N[histories.offset_U1[user] : histories.offset_U1[user + 1]][-15:]
        assert tuples.value_N[mine].tolist() == log.rating[rows].tolist()


def test_a_log_s_own_steps_are_kept() -> None:
    log = rated()
    assert log.time is not None
    own = replace(log, step=(2 * log.time // 1_000_000).astype(np.int32))  # 0, 2, …, 38
    tuples = observed(own, 30)
    assert tuples.shape[2] == 30
    assert sorted(set(tuples.step_N.tolist())) == list(range(1, 30, 2))  # of the steps 9 to 38, the even ones


def test_the_default_recipe_beats_the_mean_and_the_biases(fitted: World) -> None:
    relevance, exposure = scores(fitted, "relevance"), scores(fitted, "exposure")
    assert relevance["recipe"] < 0.5 * min(relevance["bias_only"], relevance["mean"])
    assert exposure["recipe"] > exposure["bias_only"] + 0.05 > exposure["mean"]
    assert relevance["recipe"] < relevance["world"]
    assert exposure["recipe"] > exposure["world"]
    assert exposure["mean"] == 0.5


def test_a_draw_keeps_what_is_personal(fitted: World) -> None:
    figures = fitted.describe()
    assert figures.favourites > 10
    assert figures.commonest_favourite < 0.5


def test_a_world_says_how_it_was_fitted_and_keeps_it(fitted: World, tmp_path: Path) -> None:
    fitted.save(tmp_path / "world")
    loaded = World.load(tmp_path / "world")
    assert repr(loaded) == "World(fitted: 150 users, 40 items, 20 steps, severity 1)"
    assert loaded.origin == json.loads(json.dumps(fitted.origin))
    assert loaded.origin["settings"]["relevance"]["width"] == 4
    assert loaded.origin["relevance"]["world"]["test"] == scores(fitted, "relevance")["world"]


def test_a_log_can_be_drawn_and_fits_its_world(fitted: World) -> None:
    log = fitted.log(np.random.default_rng(0))
    assert len(log) > 0.7 * 150 * 20
    assert fitted.aligned_with(log.compact()).n_steps == 20


def test_all_users_are_there_at_all_steps_unless_told_otherwise() -> None:
    log = rated()
    small = {"width": 2, "sweeps": 2, "burn_in": 1}
    whole, real = (
        fit_world(log, Fit(steps=20, relevance=small, exposure=small, real_lengths=real)) for real in (False, True)
    )
    assert not whole.start_U.any()
    assert real.start_U.tolist() == (20 - Sequences.of(log).length_U).tolist()


def test_centring_moves_relevance_and_no_favourite() -> None:
    small = {"width": 2, "sweeps": 2, "burn_in": 1}
    plain, centred = (
        fit_world(rated(), Fit(steps=20, relevance=small, exposure=small, centre=centre)) for centre in (0.0, 3.5)
    )
    users, steps = np.arange(60), np.full(60, 19)
    logit = plain.relevance_logits.logits(users, steps)
    np.testing.assert_allclose(centred.relevance_logits.logits(users, steps), logit - 3.5, atol=1e-4)
    np.testing.assert_array_equal(centred.ideal_target(users, steps), plain.ideal_target(users, steps))
    assert centred.describe().relevance.over_items > plain.describe().relevance.over_items


def test_a_world_is_the_seed_s_and_progress_ends_at_the_end() -> None:
    small = {"width": 2, "sweeps": 3, "burn_in": 1}
    told: list[tuple[int, int]] = []
    worlds = [
        fit_world(
            rated(),
            Fit(steps=20, relevance=small, exposure=small, seed=seed),
            lambda done, total: told.append((done, total)),
        )
        for seed in (0, 0, 1)
    ]
    one, same, other = (world.relevance_logits.Q_VK for world in worlds)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told[: len(told) // 3]] == sorted(done for done, _ in told[: len(told) // 3])


def without_ratings(log: Interactions) -> Interactions:
    return replace(log, rating=None)


def all_alike(log: Interactions) -> Interactions:
    return replace(log, rating=np.full(len(log), 4, np.float32))


def with_a_gap(log: Interactions) -> Interactions:
    assert log.rating is not None
    rating = log.rating.copy()
    rating[5] = np.nan
    return replace(log, rating=rating)


def tiny(log: Interactions) -> Interactions:
    return log.where(np.arange(9)).compact()


@pytest.mark.parametrize(
    ("spoil", "steps", "says"),
    [
        (without_ratings, 20, "the log has no ratings, and without them relevance cannot be .*--rating-col"),
        (all_alike, 20, r"all ratings are the same.*found 4\.0"),
        (with_a_gap, 20, "1 of .* events have no rating"),
        (lambda log: log, 21, "found 21, expected 1 to 20 steps, the longest history.*--steps 20"),
        (lambda log: log, 0, "found 0, expected 1 to 20 steps"),
        (tiny, 5, "too few ratings to split"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_reason(
    spoil: Callable[[Interactions], Interactions], steps: int, says: str
) -> None:
    with pytest.raises(UnveilError, match=says):
        fit_world(spoil(rated()), Fit(steps=steps))


def test_unknown_recipes_and_options_are_refused() -> None:
    with pytest.raises(UnveilError, match=r"unknown recipe: found 'posterier'.*Did you mean 'posterior'"):
        fit_world(rated(), Fit(recipe="posterier"))
    with pytest.raises(UnveilError, match="unknown option of the recipe 'posterior': found 'widht'"):
        fit_world(rated(), Fit(relevance={"widht": 3}))


def test_a_fit_that_diverged_is_refused() -> None:
    wild = {"lr": 1e30, "epochs": 2}
    with pytest.raises(UnveilError, match="the fit of relevance diverged"):
        fit_world(rated(), Fit(steps=20, recipe="paper", relevance=wild))


def test_a_single_step_is_a_world_too() -> None:
    small = {"width": 2, "sweeps": 3, "burn_in": 1}
    world = fit_world(rated(), Fit(steps=1, relevance=small, exposure=small))
    assert world.n_steps == 1
    assert world.describe().favourites_of_a_user == 1


def test_more_negatives_than_items_are_refused() -> None:
    with pytest.raises(UnveilError, match="more negatives than items: found 40, expected 1 to 39"):
        fit_world(rated(), Fit(steps=20, negatives=40))


def test_real_ratings_are_fitted_better_than_by_biases(shared_data: Path) -> None:
    """A short run on ml-100k; the figures of whole runs are in ADR 5."""
    log = Filters(min_item=5)(Interactions.read(shared_data / "ml-100k" / "u.data"))
    assert observed(log, 100).shape == (943, 1349, 100)
    short, shorter = {"width": 5, "sweeps": 40, "burn_in": 15}, {"width": 5, "sweeps": 16, "burn_in": 8}
    fitted = fit_world(log, Fit(relevance=short, exposure=shorter))
    relevance, exposure = scores(fitted, "relevance"), scores(fitted, "exposure")
    assert relevance["recipe"] < relevance["bias_only"] < 0.75 * relevance["mean"]
    assert exposure["recipe"] > exposure["bias_only"] + 0.05
    assert relevance["world"] < relevance["mean"]
    assert fitted.describe().favourites > 20


FIT = Fit(steps=10, exposure={"width": 2, "sweeps": 4, "burn_in": 2}, real_lengths=True)


def cube(factors: Factors) -> NDArray[np.float32]:
    """logit_UVT, by brute force."""
    return np.asarray(np.einsum("uk,vk,tk->uvt", factors.P_UK, factors.Q_VK, factors.W_TK))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), liked=st.floats(0, 1))
def test_taste_is_what_is_personal_and_steady(seed: int, liked: float) -> None:
    rng = np.random.default_rng(seed)
    psi = Factors.of(*(rng.normal(size=(size, 3)) for size in (5, 6, 4)))
    mean_UV = cube(psi).mean(2)
    item_V = mean_UV.mean(0) - mean_UV.mean()
    personal_UV = mean_UV - mean_UV.mean(0) - mean_UV.mean(1, keepdims=True) + mean_UV.mean()
    expected_UVT = np.repeat((personal_UV + liked * item_V)[:, :, None], 4, axis=2)
    np.testing.assert_allclose(cube(relevance(psi, liked)), expected_UVT, atol=1e-4)


def test_relevance_and_exposure_add_up_to_what_is_taken() -> None:
    log = replace(rated(), rating=None)
    none, whole = implicit_worlds(log, FIT, (0.0, 1.0))
    slots = np.zeros(3, np.int64), np.array([0, 4, 9])
    together = [world.relevance_logits.logits(*slots) + world.exposure_logits.logits(*slots) for world in (none, whole)]
    np.testing.assert_allclose(together[0], together[1], atol=1e-4)
    popularity = [world.exposure_logits.logits(*slots).std() for world in (none, whole)]
    assert popularity[1] != popularity[0]
    assert none.origin["liked"] == 0.0
    assert len(none.log(np.random.default_rng(0))) > 0


def test_a_share_is_a_share() -> None:
    with pytest.raises(UnveilError, match="between 0 and 1"):
        implicit_worlds(rated(), FIT, (1.5,))
