"""Where items stand among all that a user has not met: the ends by hand, the rest by counting one by one."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.data.ragged import sequences_of
from tests.simulation.feedback.small import random_histories
from unveil.data.indexing import Index
from unveil.data.interactions import Sequences
from unveil.evaluation.metrics import NOBODY
from unveil.models.baselines import Random, fitted
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.feedback import figures
from unveil.simulation.feedback import figures as module
from unveil.simulation.feedback.figures import (
    FirstLog,
    Lists,
    effective_number,
    individual,
    of_chosen,
    of_lists,
    overlap,
    recommended,
    standing,
)
from unveil.simulation.feedback.rounds import held
from unveil.simulation.world import World


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
    assert of_chosen(np.array([2, NOBODY, NOBODY, 0]), count_V) == {
        "taken": 0.5,
        "taken_efd": pytest.approx(-(np.log2(6 / 11) + np.log2(4 / 11)) / 2),
    }
    assert of_chosen(np.array([NOBODY]), count_V) == {"taken": 0.0, "taken_efd": None}


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


class Ascending:
    """Item i scores i."""

    def scores(self, token_BL: Tensor) -> Tensor:
        return torch.arange(5.0).expand(len(token_BL), -1)


def test_nothing_that_was_seen_however_long_ago() -> None:
    sequences = sequences_of([[4, 0, 1], [2], []], 5)
    found = recommended(Ascending(), sequences, length=2, k=2)
    assert found.top_UK.tolist() == [[3, 2], [4, 3], [4, 3]]
    assert found.score_UK.tolist() == [[3, 2], [4, 3], [4, 3]]


def test_a_list_is_shorter_where_too_few_items_are_left() -> None:
    found = recommended(Ascending(), sequences_of([[4, 0, 1], [0, 1, 2, 3, 4]], 5), length=3, k=4)
    assert found.top_UK.tolist() == [[3, 2, NOBODY, NOBODY], [NOBODY] * 4]
    assert found.score_UK[1].tolist() == [0, 0, 0, 0]
    assert found.filled_UK.sum(1).tolist() == [2, 0]


def test_users_by_themselves_get_the_same() -> None:
    sequences = sequences_of(random_histories(1, users=40), 30)
    for scorer in (Random(30, seed=3), fitted("popularity", sequences)):
        together = recommended(scorer, sequences, 5, 6)
        rows, figures.ROWS = figures.ROWS, 1
        try:
            alone = recommended(scorer, sequences, 5, 6)
        finally:
            figures.ROWS = rows
        assert np.array_equal(together.top_UK, alone.top_UK)
        for user in range(40):
            assert not set(together.top_UK[user]) & set(sequences.history(user))


WORLD = World.builtin(WorldSpec(users=30, items=25, steps=12), seed=1)
BASE = Sequences.of(WORLD.log(np.random.default_rng(2)))
TRUTH = held(WORLD, BASE.n_steps + 1)


def unmet(user: int) -> list[int]:
    """Worst first."""
    met = set(BASE.item_N[BASE.user_N == user].tolist())
    gamma_V = TRUTH.relevance(np.array([user]), np.array([BASE.n_steps]))[0]
    return sorted(set(range(BASE.n_items)) - met, key=lambda item: gamma_V[item])


def test_the_best_unmet_item_stands_at_1_and_the_worst_at_0() -> None:
    ends_U2 = np.array([[unmet(user)[-1], unmet(user)[0]] for user in range(BASE.n_users)], np.int32)
    np.testing.assert_array_equal(standing(TRUTH, ends_U2, BASE), np.tile([1.0, 0.0], (BASE.n_users, 1)))


@pytest.mark.parametrize("cells", [1, 2 * 25, 2**22])
def test_it_is_the_place_among_the_unmet(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELLS", cells)
    rng = np.random.default_rng(0)
    item_UK = np.array([rng.choice(unmet(user), 3, replace=False) for user in range(BASE.n_users)], np.int32)
    item_UK[4, 1:] = NOBODY
    found_UK = standing(TRUTH, item_UK, BASE)
    for (user, place), item in np.ndenumerate(item_UK):
        if item == NOBODY:
            assert np.isnan(found_UK[user, place])
        else:
            order = unmet(user)
            assert found_UK[user, place] == pytest.approx(order.index(int(item)) / (len(order) - 1))
