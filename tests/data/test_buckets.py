"""Rows put together in batches."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.data.batches import POOL, at_random, by_length

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=60).map(np.array)


@given(lengths, st.integers(1, 9), st.integers(0, 99))
def test_every_row_comes_once_in_as_many_batches(length_R: np.ndarray, batch_size: int, seed: int) -> None:
    count = -(-len(length_R) // batch_size)
    for batches in (
        list(by_length(length_R, batch_size, np.random.default_rng(seed))),
        list(at_random(length_R, batch_size, np.random.default_rng(seed))),
    ):
        assert len(batches) == count
        assert min(map(len, batches)) >= 1
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(length_R)))


@given(lengths, st.integers(1, 9), st.integers(0, 99))
def test_batches_are_stretches_of_the_rows_sorted_by_length(length_R: np.ndarray, batch_size: int, seed: int) -> None:
    """Within one pool no two batches' ranges of length overlap by more than a shared end."""
    batches = list(by_length(length_R, batch_size, np.random.default_rng(seed)))
    if len(batches) <= POOL:
        ranges = sorted((length_R[rows].min(), length_R[rows].max()) for rows in batches)
        assert all(high <= low for (_, high), (low, _) in pairwise(ranges))


def test_by_hand() -> None:
    """Twelve events in two batches: six of one row, or of six."""
    batches = by_length(np.array([1, 1, 6, 1, 1, 1, 1]), 4, np.random.default_rng(0))
    assert sorted(sorted(rows.tolist()) for rows in batches) == [[0, 1, 3, 4, 5, 6], [2]]


def test_a_row_longer_than_its_share_leaves_none_empty() -> None:
    batches = list(by_length(np.array([1, 1, 100]), 1, np.random.default_rng(0)))
    assert sorted(map(len, batches)) == [1, 1, 1]


@pytest.mark.parametrize("batch_size", [16, 128])
def test_batches_hold_like_numbers_of_events(batch_size: int) -> None:
    rng = np.random.default_rng(3)
    length_R = np.clip(rng.lognormal(4, 1, 6000), 1, 200).astype(np.int64)
    events_K = np.array([length_R[rows].sum() for rows in by_length(length_R, batch_size, rng)])
    share = length_R.mean() * batch_size
    assert np.abs(events_K / share - 1).mean() < 0.1
    rows_K = [len(rows) for rows in by_length(length_R, batch_size, rng)]
    assert min(rows_K) < 0.7 * batch_size < 2 * batch_size < max(rows_K)


def test_seeded_and_in_no_order() -> None:
    length_R = np.arange(1, 301)
    one, same, other = (list(by_length(length_R, 10, np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert [a.tolist() for a in one] != [a.tolist() for a in other]
    middles = [float(length_R[rows].mean()) for rows in one]
    assert middles != sorted(middles)
