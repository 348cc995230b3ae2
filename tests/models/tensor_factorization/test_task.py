"""What a factorisation learns from: tuples, negatives, how predictions are scored, and Pólya–Gamma variables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.tensor_factorization.tiny import some
from unveil.errors import UnveilError
from unveil.models.tensor_factorization.task import Negatives, Tuples, Where, auc, mean, mse, polya_gamma, split


@given(st.integers(10, 200), st.integers(0, 5))
def test_the_parts_are_eighty_ten_and_ten_percent_and_share_nothing(count: int, seed: int) -> None:
    tuples = some(count, (8, 9, 5))
    parts = split(tuples, np.random.default_rng(seed))
    assert [len(part) for part in parts] == [count - 2 * (count // 10), count // 10, count // 10]
    assert sorted(np.concatenate([part.key_N for part in parts])) == sorted(tuples.key_N)
    value = dict(zip(tuples.key_N, tuples.value_N, strict=True))
    assert all(value[key] == y for part in parts for key, y in zip(part.key_N, part.value_N, strict=True))


def test_the_split_is_the_seed_s() -> None:
    tuples = some(100, (8, 9, 5))
    one, same, other = (split(tuples, np.random.default_rng(seed)).test.key_N.tolist() for seed in (3, 3, 4))
    assert one == same != other


def test_too_few_tuples_are_refused() -> None:
    with pytest.raises(UnveilError, match="too few ratings to split 80/10/10: found 9, expected at least 10"):
        split(some(9, (4, 4, 4)), np.random.default_rng(0))


def test_a_key_is_the_place_in_the_flat_cube() -> None:
    tuples = some(60, (4, 5, 6))
    np.testing.assert_array_equal(tuples.key_N, np.ravel_multi_index(tuples.sides, (4, 5, 6)))


@given(st.integers(1, 100), st.integers(1, 3), st.sampled_from(["slots", "anywhere"]), st.integers(0, 9))
def test_no_negative_was_ever_interacted_with(count: int, each: int, where: Where, seed: int) -> None:
    interacted = some(count, (5, 6, 4), seed)
    positives = interacted.where(np.arange(0, count, 2))
    drawn = Negatives(interacted, each, where).draw(positives, np.random.default_rng(seed))
    assert len(drawn) == each * len(positives)
    assert not set(drawn.key_N.tolist()) & set(interacted.key_N.tolist())
    assert not drawn.value_N.any()
    assert all((side >= 0).all() and (side < size).all() for side, size in zip(drawn.sides, drawn.shape, strict=True))


def test_negatives_are_at_the_slots_of_their_positives() -> None:
    interacted = some(20, (5, 6, 4))
    drawn = Negatives(interacted, 3).draw(interacted, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn.user_N, np.repeat(interacted.user_N, 3))
    np.testing.assert_array_equal(drawn.step_N, np.repeat(interacted.step_N, 3))


def test_anywhere_means_the_whole_cube() -> None:
    one = some(1, (5, 6, 4))
    many = one.where(np.zeros(2000, int))
    drawn = Negatives(one, 3, "anywhere").draw(many, np.random.default_rng(0))
    assert len(np.unique(drawn.key_N)) == 5 * 6 * 4 - 1


def test_negatives_are_uniform_over_what_is_left() -> None:
    one = some(1, (2, 5, 3))
    drawn = Negatives(one, 1).draw(one.where(np.zeros(8000, int)), np.random.default_rng(1))
    share_V = np.bincount(drawn.item_N, minlength=5) / 8000
    assert share_V[one.item_N[0]] == 0
    np.testing.assert_allclose(np.delete(share_V, one.item_N[0]), 0.25, atol=0.02)


def test_a_slot_of_which_everything_was_taken_sends_its_negatives_elsewhere() -> None:
    full = Tuples(np.zeros(3, int), np.arange(3), np.zeros(3, int), np.ones(3), (2, 3, 2))
    drawn = Negatives(full, 2).draw(full, np.random.default_rng(0))
    assert not set(drawn.key_N.tolist()) & set(full.key_N.tolist())


def test_positives_come_first_with_value_one() -> None:
    interacted = some(20, (5, 6, 4))
    both = Negatives(interacted, 2).beside(interacted, np.random.default_rng(0))
    assert both.value_N.tolist() == [1] * 20 + [0] * 40


def test_more_negatives_than_items_are_refused() -> None:
    with pytest.raises(UnveilError, match="more negatives than items: found 6, expected 1 to 5"):
        Negatives(some(20, (5, 6, 4)), 6)


def test_a_full_cube_is_refused() -> None:
    with pytest.raises(UnveilError, match="nothing that was not exposed"):
        Negatives(some(120, (5, 6, 4)), 1)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_the_area_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    positives = [score for score, positive in rows if positive]
    negatives = [score for score, positive in rows if not positive]
    if not positives or not negatives:
        return
    pairs = [(p > n) + (p == n) / 2 for p in positives for n in negatives]
    scores, values = (np.array(column, float) for column in zip(*rows, strict=True))
    assert auc(scores, values) == pytest.approx(np.mean(pairs))


def test_the_squared_error_worked_by_hand() -> None:
    assert mse(np.array([1.0, 2.0, 5.0]), np.array([1.0, 4.0, 4.0])) == pytest.approx(5 / 3)


@pytest.mark.parametrize("tilt", [0.0, 0.5, -2.0, 8.0])
def test_the_moments_are_those_of_the_distribution(tilt: float) -> None:
    """Var = (sinh c − c) / (4c³ cosh²(c/2)), and 1/24 at c = 0."""
    drawn_N = polya_gamma(np.full(200_000, tilt), np.random.default_rng(0))
    variance = 1 / 24 if tilt == 0 else (np.sinh(tilt) - tilt) / (4 * tilt**3 * np.cosh(tilt / 2) ** 2)
    assert drawn_N.min() > 0
    assert drawn_N.mean() == pytest.approx(mean(np.array([tilt]))[0], rel=0.01)
    assert drawn_N.var() == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("tilt", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("at", [0.5, 2.0, 8.0])
def test_the_laplace_transform_is_that_of_the_distribution(tilt: float, at: float) -> None:
    """E[e^{−tω}] = cosh(c/2) / cosh √(c²/4 + t/2)."""
    drawn_N = polya_gamma(np.full(200_000, tilt), np.random.default_rng(1))
    expected = np.cosh(tilt / 2) / np.cosh(np.sqrt(tilt**2 / 4 + at / 2))
    assert np.exp(-at * drawn_N).mean() == pytest.approx(expected, rel=0.01)


def test_the_mean_is_continuous_at_zero() -> None:
    np.testing.assert_allclose(mean(np.array([0.0, 1e-5, 2e-4, 1e-2])), 0.25, rtol=1e-4)


def test_nothing_gives_nothing() -> None:
    assert len(polya_gamma(np.zeros(0), np.random.default_rng(0))) == 0
