"""Indices and order, against the plainest way to get them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.data.indexing import Vocabulary, indexed, sorted_rows

IDS = st.sampled_from(
    ["0", "7", "007", "10", "9", "-0", "+7", " 7", "é", "4294967296", "99999999", "a", "\U0001f600", "z"]
)
CLOCK = st.sampled_from([-(2**62), -1, 0, 1, 1_000, 1_000_000, 5_000_000, 2**62])


@given(st.lists(IDS) | st.lists(st.integers(0, 50).map(str)) | st.lists(st.text()))
def test_each_row_points_at_its_own_id(raw: list[str]) -> None:
    index, vocabulary = indexed(pl.Series("id", raw, dtype=pl.String))
    assert index.dtype == np.int32
    assert vocabulary == Vocabulary(raw)
    assert vocabulary.raw(index).to_list() == raw
    assert vocabulary.ids.to_list() == sorted(set(raw))


@pytest.mark.parametrize("odd", ["007", "+7", "x"])
def test_one_odd_number_among_many(odd: str) -> None:
    raw = [str(number % 97) for number in range(3000)] + [odd]
    index, vocabulary = indexed(pl.Series(raw))
    assert vocabulary.raw(index).to_list() == raw


@given(st.lists(st.tuples(st.integers(0, 4), CLOCK)))
def test_rows_by_user_then_clock_then_row(rows: list[tuple[int, int]]) -> None:
    user = np.array([user for user, _ in rows], np.int32)
    clock = np.array([clock for _, clock in rows], np.int64)
    by_hand = sorted(range(len(rows)), key=lambda row: rows[row])
    assert sorted_rows(user, clock, 5).tolist() == by_hand
    assert sorted_rows(user, None, 5).tolist() == sorted(range(len(rows)), key=lambda row: rows[row][0])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=1))
def test_a_coarse_clock_and_steps(rows: list[tuple[int, int]]) -> None:
    user = np.array([user for user, _ in rows], np.int32)
    by_hand = sorted(range(len(rows)), key=lambda row: rows[row])
    for unit, kind in ((1, np.int32), (1, np.int64), (1_000, np.int64), (1_000_000, np.int64)):
        clock = np.array([clock * unit for _, clock in rows], kind)
        assert sorted_rows(user, clock, 5).tolist() == by_hand


def test_a_clock_that_spans_more_than_a_number_holds() -> None:
    far = 9 * 10**18
    user, clock = np.zeros(4, np.int32), np.array([far, -far, far, -far])
    assert sorted_rows(user, clock, 1).tolist() == [1, 3, 0, 2]


def test_many_blocks_of_rows() -> None:
    """Large enough for several blocks, one user longer than a block; against numpy's sort by columns."""
    rng = np.random.default_rng(0)
    user = np.where(rng.random(3_000_000) < 0.4, 7, rng.integers(0, 1_000, 3_000_000)).astype(np.int32)
    clock = rng.integers(0, 500, len(user)) * 1_000_000
    assert np.array_equal(sorted_rows(user, clock, 1_001), np.lexsort((clock, user)))
