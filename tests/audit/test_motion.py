"""Popularity that stands still, and popularity that moves."""

import numpy as np
import pytest

from tests.audit.small import drawn, sequences_of
from unveil.audit.motion import along_calendar, along_histories, counts, heads


def test_heads_by_hand() -> None:
    # 20 items, heads of 2: periods 0 and 1 share one item of their heads, 1 and 2 none, 0 and 2 one.
    count_VP = np.zeros((20, 3), np.int64)
    count_VP[[0, 1], 0] = 5
    count_VP[[1, 2], 1] = 5
    count_VP[[0, 3], 2] = 5
    found = heads(count_VP, np.tile(count_VP[:, :1], 3))
    assert found.size == 2
    assert found.shared == (0.25, 0.5)
    assert found.shared[-1] == 0.5
    assert found.chance == (1.0, 1.0)


def test_counts_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    item_N, period_N = rng.integers(0, 7, 100), rng.integers(0, 4, 100)
    found = counts(item_N, period_N, 7, 4)
    assert all(found[v, p] == ((item_N == v) & (period_N == p)).sum() for v in range(7) for p in range(4))


def still(seed: int = 0) -> list[list[int]]:
    return drawn(seed, 1200, 40, 1 / np.arange(1, 41), (8, 20))


def random_times(histories: list[list[int]], seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [np.sort(rng.integers(0, 10**6, len(history))).tolist() for history in histories]


def test_a_static_world_is_not_rejected_though_likely_items_come_first() -> None:
    found = along_histories(sequences_of(still(), 40), np.random.default_rng(0))
    assert found is not None
    assert found.static is not None
    assert found.random_order.holm > 10
    assert found.static.holm <= 1
    assert found.rejecting is found.static


def test_items_that_come_late_are_found_and_named() -> None:
    histories = [sorted(history, key=lambda item: item == 7) for history in still()]
    found = along_histories(sequences_of(histories, 40), np.random.default_rng(0))
    assert found is not None
    assert found.static is not None
    assert found.static.holm >= 1
    late = [mover for mover in found.movers if mover.z > 0]
    assert late[0].item == 7
    assert late[0].shares[-1] > 5 * late[0].shares[4]
    assert late[0].events == sum(7 in history for history in histories)


def test_places_that_the_file_gives_to_ties_are_no_evidence() -> None:
    histories = [sorted(history) for history in still()]  # within one moment the file is sorted by item
    ties = [[0] * len(history) for history in histories]
    assert along_histories(sequences_of(histories, 40, ties), np.random.default_rng(0)) is None
    believed = along_histories(sequences_of(histories, 40), np.random.default_rng(0))
    assert believed is not None
    assert believed.rejecting.holm > 20


def test_the_calendar_stands_still_or_moves() -> None:
    histories = still(1)
    shuffled = [list(np.random.default_rng(n).permutation(history)) for n, history in enumerate(histories)]
    quiet = along_calendar(sequences_of(shuffled, 40, random_times(histories)), np.random.default_rng(0))
    assert quiet is not None
    assert quiet.random_order.holm == 0
    assert quiet.static is None
    assert quiet.dispersion == pytest.approx(1, abs=0.6)
    starts = [10**7 if 3 in history else 0 for history in histories]  # item 3 is taken by late users only
    times = [[start + time for time in each] for start, each in zip(starts, random_times(histories), strict=True)]
    loud = along_calendar(sequences_of(shuffled, 40, times), np.random.default_rng(0))
    assert loud is not None
    assert loud.rejecting.holm >= 1
    assert loud.movers[-1].item == 3 or 3 in [mover.item for mover in loud.movers]


def test_a_mean_place_on_the_calendar_by_hand() -> None:
    # One event a user, 24 in all; item 0 has the first twelve moments, item 1 the last.
    histories, times = [[0]] * 12 + [[1]] * 12, [[n] for n in range(24)]
    found = along_calendar(sequences_of(histories, 2, times), np.random.default_rng(0))
    assert found is not None
    assert found.random_order.items == 2
    assert found.random_order.holm == 2
    # Mean places ¼ and ¾. z² = (½² · 12²) / (12 · 12 / 23 · Var(places) · …): the variance of 12 places drawn of 24.
    places = (np.arange(24) + 0.5) / 24
    variance = 12 * 12 / 23 * places.var()
    assert found.dispersion == pytest.approx((12 * 0.25) ** 2 / variance)


def test_nothing_to_test() -> None:
    few = sequences_of([[0, 1], [1, 0]], 2)
    rng = np.random.default_rng(0)
    assert along_histories(few, rng) is None
    assert along_calendar(few, rng) is None
    assert along_calendar(sequences_of([[0]] * 30, 1, [[5]] * 30), rng) is None  # a clock that stands still
