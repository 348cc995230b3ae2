import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.evaluation.small import histories_of
from unveil.data.indexing import Vocabulary
from unveil.serving.recommendations import factor
from unveil.serving.recommender import Recommender

ITEMS = 5


class Additive:
    """score_i = Σ over the history of m[j, i]: leaving j out takes m[j, i] away, once for each occurrence."""

    def __init__(self, m_VV: Tensor) -> None:
        self.m_VV = m_VV

    def scores(self, token_BL: Tensor) -> Tensor:
        rows = [self.m_VV[row[row < ITEMS]].sum(0) for row in token_BL]
        return torch.stack(rows)


def recommender_of(m_VV: Tensor, length: int) -> Recommender:
    sequences = histories_of([0], n_items=ITEMS)
    return Recommender(Additive(m_VV), Vocabulary("abcde"), Vocabulary(["u"]), sequences, length)


def log_share(scorer: Additive, history: list[int], item: int) -> float:
    scores = scorer.m_VV[history].sum(0) if history else torch.zeros(ITEMS)
    return float(scores.log_softmax(0)[item])


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    history=st.lists(st.integers(0, ITEMS - 1), min_size=1, max_size=9),
    length=st.integers(2, 12),
)
def test_it_is_what_asking_again_without_the_item_gives(seed: int, history: list[int], length: int) -> None:
    scorer = Additive(torch.randn(ITEMS, ITEMS, generator=torch.Generator().manual_seed(seed)))
    item_J, effect_JK = recommender_of(scorer.m_VV, length).effects(np.array(history), np.arange(ITEMS))
    read = history[-(length - 1) :]
    assert item_J.tolist() == sorted(set(read))
    for j, left_out in enumerate(item_J.tolist()):
        without = [item for item in history if item != left_out][-(length - 1) :]
        for item in range(ITEMS):
            expected = log_share(scorer, read, item) - log_share(scorer, without, item)
            assert effect_JK[j, item] == pytest.approx(expected, abs=1e-4)


def test_the_strongest_come_first_for_or_against() -> None:
    m_VV = torch.zeros(ITEMS, ITEMS)
    m_VV[0, 4], m_VV[1, 4], m_VV[2, 4] = 0.5, -2.0, 1.0
    (found,) = recommender_of(m_VV, 10).reasons(np.array([0, 1, 2]), np.array([4]), 2)
    assert [item for item, _ in found] == [1, 2]
    (_, against), (_, pro) = found
    assert against < 0 < pro
    assert [len(found) for found in recommender_of(m_VV, 10).reasons(np.array([0, 1, 2]), np.array([4]), 9)] == [3]


def test_a_model_that_reads_nothing_has_no_reasons() -> None:
    assert recommender_of(torch.zeros(ITEMS, ITEMS), 1).reasons(np.array([1, 2]), np.array([0]), 3) == [[]]


@pytest.mark.parametrize(
    ("effect", "text"), [(np.log(1.5), "× 1.50"), (-np.log(1.5), "÷ 1.50"), (0.0, "× 1.00"), (9999.0, "× > 1000")]
)
def test_effects_in_words(effect: float, text: str) -> None:
    assert factor(effect) == text
