import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.factorization.tiny import some
from unveil.errors import UnveilError
from unveil.models.factorization.negatives import Negatives, Where
from unveil.models.factorization.tuples import Tuples


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
