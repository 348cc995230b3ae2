"""The shuffle test: counted by hand, by brute force, and on logs whose order is known."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audit.small import sequences_of
from unveil.audit.order import Walk, against, order, within


def walk_of(histories: list[list[int]], half: list[bool]) -> tuple[Walk, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    sequences = sequences_of(histories, 6)
    return Walk(sequences.user_N, 6, np.array(half)), sequences.item_N


def test_worked_out_by_hand() -> None:
    # 0→1 three times, 1→2 twice, 2→0 and 0→2 once: 3 + 1 pairs of equal transitions.
    walk, item_N = walk_of([[0, 1, 2], [0, 1, 2, 0], [0, 1], [0, 2]], [True, True, False, False])
    assert walk.recurring(item_N) == 4
    # Learnt from the first two users: 0 → 1. The third goes so, the fourth does not.
    assert walk.guessed(item_N) == 0.5


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=2, max_size=8))
def test_against_brute_force(histories: list[list[int]]) -> None:
    half = [user % 2 == 0 for user in range(len(histories))]
    walk, item_N = walk_of(histories, half)
    ways = [list(itertools.pairwise(history)) for history in histories]
    every = Counter(way for each in ways for way in each)
    assert walk.recurring(item_N) == sum(count * (count - 1) // 2 for count in every.values())
    learnt = Counter(way for each in ways[::2] for way in each)
    best = {a: min(learnt, key=lambda way: (way[0] != a, -learnt[way], way[1])) for a, _ in learnt}
    asked = [way for each in ways[1::2] for way in each]
    right = sum(best.get(way[0]) == way for way in asked)
    assert walk.guessed(item_N) == pytest.approx(right / len(asked) if asked else 0)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=20), st.integers(0, 100))
def test_a_shuffle_stays_within_its_blocks(sizes: list[int], seed: int) -> None:
    block_N = np.repeat(np.arange(len(sizes)), sizes)
    from_N = within(block_N, np.random.default_rng(seed))
    assert sorted(from_N.tolist()) == list(range(len(block_N)))
    assert (block_N[from_N] == block_N).all()


def test_p_counts_shuffles_at_least_as_extreme() -> None:
    values = iter([1, 5, 3, 9])
    found = against(5, lambda: next(values), 4)
    assert found.p == pytest.approx(3 / 5)
    assert found.expected == 4.5
    assert found.z == pytest.approx((5 - 4.5) / np.std([1, 5, 3, 9], ddof=1))
    assert against(5, lambda: 5, 3).z == 0


def chain(seed: int, users: int = 300, items: int = 60) -> list[list[int]]:
    """Everybody walks around the circle of items from a place of their own: the next item is known."""
    starts = np.random.default_rng(seed).integers(0, items, users)
    return [[int(start + step) % items for step in range(10)] for start in starts]


def test_a_walk_has_order_and_shuffled_it_has_none() -> None:
    found = order(sequences_of(chain(0), 60), np.random.default_rng(0))
    assert found is not None
    assert found.whole.p == 0.01
    assert found.near.p == 0.01
    assert found.ratio > 5
    assert found.guessed > 0.9
    assert found.guessed_shuffled < 0.3
    rng = np.random.default_rng(1)
    p = []
    for seed in range(8):
        shuffled = [rng.permutation(history).tolist() for history in chain(seed, users=100)]
        fair = order(sequences_of(shuffled, 60), rng, shuffles=19)
        assert fair is not None
        p.append(fair.whole.p)
    assert min(p) < 1 < 20 * np.mean(p)
    assert sum(each <= 0.1 for each in p) <= 3


def test_slow_drift_is_not_near_order() -> None:
    rng = np.random.default_rng(2)
    # Two halves of the catalogue, one after the other; within each half any order.
    histories = [[*rng.permutation(30)[:10].tolist(), *(30 + rng.permutation(30)[:10]).tolist()] for _ in range(300)]
    found = order(sequences_of(histories, 60), rng)
    assert found is not None
    assert found.whole.p == 0.01
    assert found.whole.z > 20
    assert abs(found.near.z) < 4


def test_the_order_of_the_file_within_a_moment_is_no_order() -> None:
    rng = np.random.default_rng(3)
    histories = [sorted(rng.permutation(30)[:10].tolist()) for _ in range(300)]
    together = [[user] * 10 for user in range(300)]
    found = order(sequences_of(histories, 30, together), np.random.default_rng(0))
    assert found is not None
    assert found.tied == 1
    assert found.as_filed is not None
    assert found.as_filed > 2 * found.recurring  # sorted rows look like order
    assert abs(found.whole.z) < 4
    apart = order(sequences_of(histories, 30), np.random.default_rng(0))
    assert apart is not None
    assert apart.as_filed is None
    assert apart.whole.p == 0.01


def test_no_two_events_no_order() -> None:
    assert order(sequences_of([[0], [1], [2]], 3), np.random.default_rng(0)) is None
    lone = order(sequences_of([[0, 1], [2]], 3), np.random.default_rng(0), shuffles=9)
    assert lone is not None
    assert lone.whole.p == 1
    assert lone.ratio == 1
