import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unveil.propensity.factors import TILE, Factors, sigmoid


def random_factors(seed: int, users: int = 5, items: int = 7, steps: int = 4, width: int = 3) -> Factors:
    rng = np.random.default_rng(seed)
    return Factors.of(*(rng.standard_normal((size, width)) for size in (users, items, steps)))


def test_a_logit_worked_by_hand() -> None:
    factors = Factors.of(np.array([[2.0, 1.0]]), np.array([[3.0, -1.0], [0.5, 4.0]]), np.array([[1.0, 10.0]]))
    assert factors.logits(np.array([0]), np.array([0])).tolist() == [[6 - 10, 1 + 40]]


def test_biases_are_added_on_their_own_side() -> None:
    zero = Factors.constant(2, 3, 2, 0.5)
    biased = zero.biased(np.array([0, 10]), np.array([0, 1, 2]), np.array([0, 100]))
    assert biased.logits(np.array([0, 1]), np.array([1, 0])).tolist() == [[100.5, 101.5, 102.5], [10.5, 11.5, 12.5]]


@given(st.integers(0, 999), st.integers(1, 3 * TILE))
def test_blocks_and_single_items_agree_with_the_cube(seed: int, slots: int) -> None:
    factors, rng = random_factors(seed), np.random.default_rng(seed)
    user_B, step_B = rng.integers(0, 5, slots), rng.integers(0, 4, slots)
    cube = np.einsum("uk,vk,tk->uvt", *(t.astype(float) for t in (factors.P_UK, factors.Q_VK, factors.W_TK)))
    expected_BV = cube[user_B, :, step_B]
    np.testing.assert_allclose(factors.logits(user_B, step_B), expected_BV, atol=1e-5)
    item_B = rng.integers(0, 7, slots)
    one_B = factors.logits_of(user_B, item_B, step_B)
    np.testing.assert_allclose(one_B, expected_BV[np.arange(slots), item_B], atol=1e-5)


@given(st.integers(0, 999), st.floats(-3, 3))
def test_a_sum_of_factors_is_the_sum_of_logits(seed: int, scale: float) -> None:
    one, two = random_factors(seed), random_factors(seed + 1, width=2)
    user_B, step_B = np.arange(5), np.zeros(5, int)
    together = one.logits(user_B, step_B) + np.float32(scale) * two.logits(user_B, step_B)
    np.testing.assert_allclose(one.plus(two, scale).logits(user_B, step_B), together, atol=1e-4)


def test_tables_of_different_widths_are_refused() -> None:
    with pytest.raises(ValueError, match="different widths"):
        Factors.of(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 4)))


def test_the_sigmoid_does_not_overflow() -> None:
    assert sigmoid(np.array([-1000, 0, 1000], np.float32)).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_logit_has_the_same_bits_on_any_number_of_threads_and_in_any_company(threads: int) -> None:
    factors, rng = random_factors(1, users=50, items=90, steps=20, width=40), np.random.default_rng(0)
    user_B, step_B = rng.integers(0, 50, 150), rng.integers(0, 20, 150)
    together = factors.logits(user_B, step_B)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        alone = np.concatenate([factors.logits(user_B[[n]], step_B[[n]]) for n in range(150)])
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(alone, together)


def test_tables_that_may_not_be_written_to_will_do() -> None:
    factors = random_factors(2)
    expected = factors.logits(np.arange(5), np.zeros(5, int))
    for table in (factors.P_UK, factors.Q_VK, factors.W_TK):
        table.flags.writeable = False
    frozen = Factors(factors.P_UK, factors.Q_VK, factors.W_TK)
    np.testing.assert_array_equal(frozen.logits(np.arange(5), np.zeros(5, int)), expected)


def test_more_triples_than_are_looked_up_at_once() -> None:
    factors, rng = random_factors(3), np.random.default_rng(0)
    user_M, item_M, step_M = (rng.integers(0, size, 70_000) for size in factors.shape)
    logit_M = factors.logits_of(user_M, item_M, step_M)
    for some in (slice(0, 50), slice(65_500, 65_600), slice(-50, None)):
        part = factors.logits_of(user_M[some], item_M[some], step_M[some])
        np.testing.assert_array_equal(logit_M[some], part)
