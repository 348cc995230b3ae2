from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.ragged import sequences_of
from tests.simulation.feedback.small import random_histories
from unveil.data.vocabulary import Index
from unveil.evaluation.metrics import NOBODY
from unveil.simulation.feedback.figures import (
    FirstLog,
    counts,
    effective_number,
    individual,
    of_lists,
    of_taken,
    overlap,
)
from unveil.simulation.feedback.lists import Lists


def lists_of(top_UK: Sequence[Sequence[int]]) -> Lists:
    top = np.array(top_UK, np.int32)
    return Lists(top, np.zeros(top.shape, np.float32))


def random_lists(seed: int, users: int, places: int, items: int) -> Index:
    rng = np.random.default_rng(seed)
    top_UK = np.stack([rng.permutation(items)[:places] for _ in range(users)]).astype(np.int32)
    for user, filled in enumerate(rng.integers(0, places + 1, users)):
        top_UK[user, filled:] = NOBODY
    return top_UK


def test_a_round_worked_out_by_hand() -> None:
    base = sequences_of([[0, 1], [0, 2], [0, 1, 3]], 4)  # taken 3, 2, 1, 1 times
    record = of_lists(lists_of([[2, 3], [1, 3], [2, NOBODY]]), base, FirstLog.of(base))
    bits = -np.log2(np.array([4, 3, 2, 2]) / 11)
    assert record["efd"] == pytest.approx((bits[2] + (bits[1] + bits[3]) / 2 + bits[2]) / 3)
    assert record["efd_first"] == record["efd"]
    assert record["arp"] == pytest.approx((1 + 1.5 + 1) / 3)
    assert record["coverage"] == 3 / 4
    assert record["overlap"] == pytest.approx((0.5 + 0.5 + 0) / 3)  # 3 in common, 2 in common, none
    assert record["collective"] == pytest.approx(2 ** -(0.8 * np.log2(0.4) + 0.2 * np.log2(0.2)))
    assert record["individual"] == pytest.approx((1 + (1 - 1 / np.sqrt(2))) / 2)  # one taker of 3 among the two of 1
    assert record["short"] == pytest.approx(1 / 3)
    assert record["events"] == 7


def test_users_who_have_seen_everything_have_no_novelty_to_count() -> None:
    base = sequences_of([[0, 1], [0, 2], [0, 1, 3]], 4)
    alone, beside = (of_lists(lists_of(top), base, FirstLog.of(base)) for top in ([[2, 3]], [[2, 3], [NOBODY, NOBODY]]))
    assert (beside["efd"], beside["arp"]) == (alone["efd"], alone["arp"])
    assert of_lists(lists_of([[NOBODY, NOBODY]]), base, FirstLog.of(base))["efd"] == 0


def test_novelty_by_the_first_log_does_not_move_with_the_log() -> None:
    first, later = sequences_of([[0, 1], [0, 2]], 4), sequences_of([[0, 1, 3], [0, 2, 3]], 4)
    before, after = (of_lists(lists_of([[3], [3]]), log, FirstLog.of(first)) for log in (first, later))
    assert after["efd_first"] == before["efd_first"]
    assert before["efd"] == pytest.approx(-np.log2(1 / 8))
    assert after["efd"] == pytest.approx(-np.log2(3 / 10))


def test_what_was_taken() -> None:
    count_V = np.array([3, 0, 5])
    assert of_taken(np.array([2, NOBODY, NOBODY, 0]), count_V) == {
        "taken": 0.5,
        "taken_efd": pytest.approx(-(np.log2(6 / 11) + np.log2(4 / 11)) / 2),
    }
    assert of_taken(np.array([NOBODY]), count_V) == {"taken": 0.0, "taken_efd": None}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_overlap_is_the_mean_over_all_pairs(seed: int) -> None:
    top_UK = random_lists(seed, users=9, places=4, items=7)
    sets = [set(row) - {NOBODY} for row in top_UK]
    expected = np.mean([len(a & b) / 4 for a, b in combinations(sets, 2)])
    assert overlap(np.bincount(top_UK[top_UK != NOBODY], minlength=7), 9, 4) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_individual_diversity_is_the_mean_over_all_pairs_of_a_list(seed: int) -> None:
    base = sequences_of(random_histories(seed, users=9, items=8), 8)
    top_UK = random_lists(seed, users=6, places=4, items=8)
    takers = [set(np.flatnonzero([item in base.history(user) for user in range(9)])) for item in range(8)]

    def cosine(a: int, b: int) -> float:
        both = len(takers[a] & takers[b])
        return float(both / max((len(takers[a]) * len(takers[b])) ** 0.5, 1.0))

    values = [
        1 - np.mean([cosine(a, b) for a, b in combinations(row[row != NOBODY], 2)])
        for row in top_UK
        if (row != NOBODY).sum() > 1
    ]
    found = individual(top_UK, FirstLog.of(base))
    assert found == (pytest.approx(np.mean(values)) if values else None)


def test_the_effective_number_of_items() -> None:
    assert effective_number(np.array([5, 5, 0, 5, 5])) == pytest.approx(4)
    assert effective_number(np.array([9, 0])) == pytest.approx(1)
    assert effective_number(np.array([99, 1])) < 1.1
    assert counts(sequences_of([[0, 1], [1]], 3)).tolist() == [1, 2, 0]
