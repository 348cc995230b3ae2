import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.factorization.tiny import some
from unveil.errors import UnveilError
from unveil.models.factorization.tuples import split


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
