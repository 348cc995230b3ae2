"""The draw against exact enumeration over all outcomes of O and R, on a world of 2 users, 3 items and 2 steps."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.vocabulary import Vocabulary
from unveil.propensity.factors import TILE, Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.choice import CHOICES, choice_model
from unveil.simulation.generate import draw, whole_tiles
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
    model, total = choice_model(name), np.zeros((USERS, ITEMS, STEPS))
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
    events = draw(world, np.random.default_rng(1), choice_model(name), relevance_draw=relevance_draw)
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
    usual = draw(world, np.random.default_rng(7), choice_model(name))
    blocked = draw(world, np.random.default_rng(7), choice_model(name), block=block)
    for column in ("user_N", "item_N", "step_N"):
        np.testing.assert_array_equal(getattr(usual, column), getattr(blocked, column))


def test_blocks_are_whole_tiles() -> None:
    assert [whole_tiles(size) for size in (0, 1, TILE, TILE + 1)] == [TILE, TILE, TILE, 2 * TILE]


def test_progress_ends_with_every_slot_done() -> None:
    seen: list[tuple[int, int]] = []
    world = World.builtin(WorldSpec(users=30, items=9, steps=12))
    draw(world, np.random.default_rng(0), choice_model("rational_all"), block=1, progress=lambda *at: seen.append(at))
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
        events = draw(harsh, np.random.default_rng(2), choice_model("rational_exposed"), relevance_draw=False)
        table = np.zeros((40, 20))
        table[events.user_N, events.step_N] = harsh.relevance_of(events.user_N, events.item_N, events.step_N)
        gamma.append(table)
    assert (gamma[0] >= gamma[1] - 1e-6).all()
    assert (gamma[0] > gamma[1] + 0.01).any()
