"""The draw against exact enumeration over all outcomes of O and R, on a world of 2 users, 3 items and 2 steps."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.propensity.factors import TILE, Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.choice import CHOICES
from unveil.simulation.generate import draw, rate_that_leaves
from unveil.simulation.world import World

USERS, ITEMS, STEPS = 2, 3, 2
DRAWS = 3000


def tiny_world(copies: int = 1) -> World:
    """Every user `copies` times over, so that one draw is many draws of the same small world."""
    rng = np.random.default_rng(5)

    def factors() -> Factors:
        P, Q, W = (rng.normal(0, 1.2, (size, 2)) for size in (USERS, ITEMS, STEPS))
        return Factors.of(np.repeat(P, copies, 0), Q, W)

    users = Vocabulary([f"u{number:05d}" for number in range(USERS * copies)])
    start_U = np.repeat([0, 1], copies).astype(np.int32)
    return World(factors(), factors(), users, Vocabulary("abc"), start_U, 1.5, {"kind": "tiny"})


def probability_of_events(world: World, name: str, relevance_draw: bool) -> NDArray[np.float64]:
    """P(Y_sit = 1), by adding up the probabilities of all outcomes of exposure and relevance."""
    model, total = CHOICES[name](), np.zeros((USERS, ITEMS, STEPS))
    for user, step in zip(*world.slots(), strict=True):
        at = np.array([user]), np.array([step])
        theta, gamma = world.exposure(*at)[0].astype(float), world.relevance(*at)[0].astype(float)
        logit = world.relevance_logits.logits(*at)
        for shown in product([False, True], repeat=ITEMS):
            exposed = np.array(shown)
            seen = np.where(exposed, theta, 1 - theta).prod()
            choice = model.probability(logit, exposed[None])[0]
            for liked in product([False, True], repeat=ITEMS):
                relevant = np.array(liked)
                luck = np.where(relevant, gamma, 1 - gamma).prod()
                total[user, :, step] += seen * luck * choice * exposed * (relevant if relevance_draw else True)
    return total


@pytest.mark.parametrize("relevance_draw", [True, False])
@pytest.mark.parametrize("name", list(CHOICES))
def test_frequencies_are_those_of_exact_enumeration(name: str, relevance_draw: bool) -> None:
    world = tiny_world(DRAWS)
    events = draw(world, np.random.default_rng(1), CHOICES[name](), relevance_draw=relevance_draw)
    count = np.zeros((USERS, ITEMS, STEPS))
    np.add.at(count, (events.user_N // DRAWS, events.item_N, events.step_N), 1)
    expected = probability_of_events(tiny_world(), name, relevance_draw)
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert (np.abs(count / DRAWS - expected) <= 4.5 * error).all()  # 96 comparisons: a false alarm once in 1,500 seeds
    assert (count[expected == 0] == 0).all()


def test_the_rational_users_probability_worked_by_hand() -> None:
    """P(i) = θ_i · Π_{j better than i} (1 − θ_j), and nothing before the user has joined."""
    world = tiny_world()
    probability = probability_of_events(world, "rational_exposed", relevance_draw=False)
    theta = world.exposure(np.array([0]), np.array([1]))[0].astype(float)
    best, second, third = np.argsort(-world.relevance(np.array([0]), np.array([1]))[0])
    assert probability[0, best, 1] == pytest.approx(theta[best])
    assert probability[0, second, 1] == pytest.approx(theta[second] * (1 - theta[best]))
    assert probability[0, third, 1] == pytest.approx(theta[third] * (1 - theta[best]) * (1 - theta[second]))
    assert probability[1, :, 0].sum() == 0


@pytest.mark.parametrize("block", [1, TILE, 5 * TILE, 1_000_000])
@pytest.mark.parametrize("name", list(CHOICES))
def test_a_draw_does_not_depend_on_the_block_size(name: str, block: int) -> None:
    world = World.builtin(WorldSpec(users=61, items=37, steps=23), seed=3)
    usual = draw(world, np.random.default_rng(7), CHOICES[name]())
    blocked = draw(world, np.random.default_rng(7), CHOICES[name](), block=block)
    for column in ("user_N", "item_N", "step_N"):
        np.testing.assert_array_equal(getattr(usual, column), getattr(blocked, column))


def test_progress_ends_with_every_slot_done() -> None:
    seen: list[tuple[int, int]] = []
    world = World.builtin(WorldSpec(users=30, items=9, steps=12))
    draw(world, np.random.default_rng(0), CHOICES["rational_all"](), block=1, progress=lambda *at: seen.append(at))
    slots = len(world.slots()[0])
    assert seen[-1] == (slots, slots)
    assert seen == sorted(set(seen))
    assert len(seen) > 1


@pytest.fixture(scope="module")
def log() -> Interactions:
    return World.builtin().log(np.random.default_rng(0))


def test_every_event_carries_its_own_step(log: Interactions) -> None:
    """θ looked up by the log's own user, item and step is the propensity that the log carries."""
    world = World.builtin()
    assert log.step is not None
    assert log.propensity is not None
    for start in range(0, len(log), 1000):
        rows = slice(start, start + 1000)
        theta_BV = world.exposure(log.user[rows], log.step[rows])
        theta = theta_BV[np.arange(len(theta_BV)), log.item[rows]]
        np.testing.assert_allclose(theta, log.propensity[rows], rtol=1e-4)
    wrong = world.exposure_of(log.user, log.item, np.maximum(log.step - 1, 0))
    assert np.abs(wrong - log.propensity).max() > 0.01  # the step before is another matter


def test_time_order_is_step_order_and_no_two_events_share_a_slot(log: Interactions) -> None:
    assert log.step is not None
    assert log.time is not None
    row = log.order()
    same_user = log.user[row][1:] == log.user[row][:-1]
    assert (np.diff(log.step[row])[same_user] > 0).all()
    assert (np.diff(log.time[row])[same_user] > 0).all()


def test_nobody_acts_before_they_have_joined(log: Interactions) -> None:
    assert log.step is not None
    assert (log.step >= World.builtin().start_U[log.user]).all()


def test_raw_ids_are_readable_and_line_up_with_the_world(log: Interactions) -> None:
    assert (log.users[0], log.items[299], len(log.users), len(log.items)) == ("u0001", "i0300", 600, 300)


def test_the_same_seed_gives_the_same_log_and_another_seed_another(log: Interactions) -> None:
    assert World.builtin().log(np.random.default_rng(0)) == log
    assert World.builtin().log(np.random.default_rng(1)) != log
    assert World.builtin(seed=1).log(np.random.default_rng(0)) != log


def test_severities_share_their_luck() -> None:
    """With the same numbers a harsher world exposes a part of what a milder one does: the best can only get worse."""
    world = World.builtin(WorldSpec(users=40, items=50, steps=20))
    gamma = []
    for severity in (1, 3):
        harsh = world.with_severity(severity)
        events = draw(harsh, np.random.default_rng(2), CHOICES["rational_exposed"](), relevance_draw=False)
        table = np.zeros((40, 20))
        table[events.user_N, events.step_N] = harsh.relevance_of(events.user_N, events.item_N, events.step_N)
        gamma.append(table)
    assert (gamma[0] >= gamma[1] - 1e-6).all()
    assert (gamma[0] > gamma[1] + 0.01).any()


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
        drawn(rate)


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


RATED = World.builtin(WorldSpec(users=150, items=40, steps=30), seed=2)


def rated_log(noise: float | None = None, *, stars: bool = False, world: World = RATED) -> Interactions:
    return world.log(np.random.default_rng(4), ratings_noise=noise, stars=stars)


def ratings(log: Interactions) -> np.ndarray:
    assert log.rating is not None
    return log.rating.astype(np.float64)


def liked(log: Interactions) -> np.ndarray:
    assert log.step is not None
    return RATED.relevance_logits.logits_of(log.user, log.item, log.step)


@pytest.mark.parametrize(("noise", "stars"), [(0.0, False), (1.0, False), (3.0, True)])
def test_all_else_of_the_draw_is_as_without_ratings(noise: float, stars: bool) -> None:
    rated = rated_log(noise, stars=stars)
    assert rated.rating is not None
    assert replace(rated, rating=None) == rated_log()


def test_without_noise_a_rating_is_the_relevance_logit() -> None:
    log = rated_log(0.0)
    np.testing.assert_allclose(ratings(log), liked(log), rtol=1e-6)


def test_the_error_has_the_stated_size_and_knows_nothing_of_relevance() -> None:
    log = rated_log(0.7)
    once = np.unique(log.user.astype(np.int64) * 40 + log.item, return_index=True)[1]
    error = (ratings(log) - liked(log))[once]
    n = len(error)
    assert n > 500
    assert error.mean() == pytest.approx(0, abs=4 * 0.7 / np.sqrt(n))
    assert error.std() == pytest.approx(0.7, rel=4 / np.sqrt(2 * n))
    assert abs(np.corrcoef(error, liked(log)[once])[0, 1]) < 4 / np.sqrt(n)


def test_an_opinion_stays_when_the_item_is_taken_again() -> None:
    log = rated_log(0.7)
    error = ratings(log) - liked(log)
    _, first, nth = np.unique(log.user.astype(np.int64) * 40 + log.item, return_index=True, return_inverse=True)
    assert len(first) < len(error), "some are taken again"
    np.testing.assert_allclose(error, error[first][nth], atol=1e-5)


def test_the_noise_is_the_same_luck_at_any_size() -> None:
    one, two = (ratings(rated_log(noise)) - liked(rated_log()) for noise in (1.0, 2.0))
    np.testing.assert_allclose(two, 2 * one, atol=1e-5)


def test_stars_are_the_nearest_of_five() -> None:
    fine, stars = ratings(rated_log(1.0)), ratings(rated_log(1.0, stars=True))
    assert set(np.unique(stars)) <= {1, 2, 3, 4, 5}
    inside = (fine > 1) & (fine < 5)
    assert (np.abs(stars - fine)[inside] <= 0.5).all()
    assert (stars[fine >= 5] == 5).all()
    assert (stars[fine <= 1] == 1).all()


def test_a_centre_that_the_fit_took_away_is_given_back() -> None:
    centred = replace(RATED, origin={"kind": "fitted", "settings": {"centre": 3.5}})
    np.testing.assert_allclose(ratings(rated_log(0.0, world=centred)), liked(rated_log()) + 3.5, rtol=1e-6)


@pytest.mark.parametrize("noise", [-0.1, float("nan"), float("inf")])
def test_an_error_that_is_no_size_is_refused(noise: float) -> None:
    with pytest.raises(UnveilError, match="ratings_noise: out of range"):
        rated_log(noise)
