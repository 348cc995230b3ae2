import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.data.describe import describe
from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Vocabulary
from unveil.errors import UnveilError
from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World


def hand_made(severity: float = 2.0) -> World:
    """One user, two items, two steps: exposure ½ and ¼ at step 0, ½ and ½ at step 1; the first item is liked more."""
    exposure = Factors.of(np.array([[1.0]]), np.array([[0.0], [-np.log(3)]]), np.array([[1.0], [0.0]]))
    relevance = Factors.constant(1, 2, 2).biased(item_V=np.array([np.log(4), 0.0]))
    return World(relevance, exposure, Vocabulary("u"), Vocabulary("ab"), np.zeros(1, np.int32), severity, {})


def test_exposure_and_relevance_worked_by_hand() -> None:
    world, user, step = hand_made(), np.array([0, 0]), np.array([0, 1])
    np.testing.assert_allclose(world.exposure(user, step), [[1 / 4, 1 / 16], [1 / 4, 1 / 4]], rtol=1e-6)
    np.testing.assert_allclose(world.exposure_of(user, np.array([1, 1]), step), [1 / 16, 1 / 4], rtol=1e-6)
    np.testing.assert_allclose(world.static_exposure(np.array([0])), [[1 / 4, 5 / 32]], rtol=1e-6)
    np.testing.assert_allclose(world.relevance(user, step), [[4 / 5, 1 / 2]] * 2, rtol=1e-6)
    np.testing.assert_allclose(world.relevance_of(user, np.array([0, 1]), step), [4 / 5, 1 / 2], rtol=1e-6)


def test_the_ideal_target_is_the_most_relevant_item() -> None:
    assert hand_made().ideal_target(np.array([0]), np.array([1])).tolist() == [0]


@given(st.floats(0.2, 5), st.floats(0.2, 5))
def test_exposure_falls_as_severity_rises(one: float, two: float) -> None:
    mild, harsh = (hand_made(p).exposure(np.array([0]), np.array([0])) for p in sorted([one, two]))
    assert (mild >= harsh).all()
    assert hand_made().with_severity(one).exposure_of(*np.zeros((3, 1), int)) == pytest.approx(0.5**one, rel=1e-5)


@pytest.mark.parametrize("severity", [0, -1, float("nan"), float("inf")])
def test_a_severity_out_of_range_is_refused(severity: float) -> None:
    with pytest.raises(UnveilError, match="severity"):
        hand_made().with_severity(severity)


def test_slots_run_from_each_users_first_step_to_the_last() -> None:
    world = World.builtin(WorldSpec(users=3, items=2, steps=4, shortest=1))
    object.__setattr__(world, "start_U", np.array([2, 0, 3], np.int32))
    user_S, step_S = world.slots()
    assert user_S.tolist() == [0, 0, 1, 1, 1, 1, 2]
    assert step_S.tolist() == [2, 3, 0, 1, 2, 3, 3]


def test_first_steps_that_do_not_fit_are_refused() -> None:
    world = hand_made()
    with pytest.raises(ValueError, match="first steps"):
        World(world.relevance_logits, world.exposure_logits, world.users, world.items, np.array([2]), 1, {})
    with pytest.raises(ValueError, match="differ in size"):
        World(world.relevance_logits, world.exposure_logits, world.users, Vocabulary("abc"), world.start_U, 1, {})


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_default_log_is_shaped_like_a_real_one(seed: int) -> None:
    log = World.builtin(seed=seed).log(np.random.default_rng(seed))
    figures = describe(log)
    assert figures.users >= 595
    assert 11_000 < figures.interactions < 14_000
    assert figures.items > 280
    assert 0.5 < figures.skew.gini < 0.75
    assert figures.skew.top_10_percent > 0.35
    length_U = Sequences.of(log).length_U
    assert length_U.max() >= 45
    assert ((length_U >= 3) & (length_U <= 5)).sum() >= 10
    assert 1.5 < np.percentile(length_U, 75) / np.percentile(length_U, 25) < 6
    assert figures.too_short <= 10


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_relevance_is_personal_and_exposure_unequal(seed: int) -> None:
    figures = World.builtin(seed=seed).describe()
    assert figures.favourites > 80
    assert figures.commonest_favourite < 0.12
    assert figures.exposure_gini > 0.4
    assert 5 < figures.exposed_per_slot < 20


def test_exposure_has_seasons_and_the_dials_turn_them_off() -> None:
    """How far one user's exposure to one item moves along the steps."""

    def swing(world: World) -> float:
        theta_TV = world.exposure(np.zeros(50, int), np.arange(50))
        return float(np.median(theta_TV.max(0) / theta_TV.min(0)))

    assert swing(World.builtin()) > 10
    assert swing(World.builtin(WorldSpec(season=0))) == pytest.approx(1)


def test_exposure_is_independent_of_relevance_unless_asked() -> None:
    def correlation(rho: float) -> float:
        world = World.builtin(WorldSpec(correlation=rho, season=0, tail=0))
        user_B = np.arange(world.n_users)
        step_B = np.full(len(user_B), 25)
        relevance, exposure = (
            f.logits(user_B, step_B).ravel() for f in (world.relevance_logits, world.exposure_logits)
        )
        return float(np.corrcoef(relevance, exposure)[0, 1])

    assert abs(correlation(0)) < 0.05
    assert correlation(0.7) == pytest.approx(0.7, abs=0.05)
    assert correlation(-1) == pytest.approx(-1, abs=0.01)


def test_a_world_without_personal_taste_has_one_favourite() -> None:
    assert World.builtin(WorldSpec(personal=0)).describe().favourites == 1


def test_the_description_agrees_with_the_whole_cube() -> None:
    world = World.builtin(WorldSpec(users=20, items=15, steps=10))
    figures, (user_S, step_S) = world.describe(), world.slots()
    gamma_SV, theta_SV = world.relevance(user_S, step_S), world.exposure(user_S, step_S)
    assert figures.slots == len(user_S)
    assert figures.relevance.mean == pytest.approx(gamma_SV.mean(), rel=1e-5)
    assert figures.relevance.over_items == pytest.approx(gamma_SV.mean(0).std(), rel=1e-4)
    by_user = [gamma_SV[user_S == user].mean() for user in range(20)]
    assert figures.relevance.over_users == pytest.approx(np.std(by_user), rel=1e-4)
    by_step = [theta_SV[step_S == step].mean() for step in range(10) if (step_S == step).any()]
    assert figures.exposure.over_steps == pytest.approx(np.std(by_step), rel=1e-4)
    assert figures.exposed_per_slot == pytest.approx(theta_SV.sum(1).mean(), rel=1e-5)


def test_a_parameter_out_of_range_is_refused() -> None:
    with pytest.raises(UnveilError, match=r"personal: .*found 1\.2, expected 0 to 1"):
        WorldSpec(personal=1.2)


def test_a_world_says_what_it_is() -> None:
    assert repr(World.builtin()) == "World(builtin: 600 users, 300 items, 50 steps, severity 2)"
