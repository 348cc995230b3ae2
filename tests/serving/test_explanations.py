import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from unveil.serving.explanations import effects, factor

ITEMS = 5


class Additive:
    """score_i = Σ over the history of m[j, i]: leaving j out takes m[j, i] away, once for each occurrence."""

    def __init__(self, m_VV: Tensor) -> None:
        self.m_VV = m_VV

    def scores(self, token_BL: Tensor) -> Tensor:
        rows = [self.m_VV[row[row < ITEMS]].sum(0) for row in token_BL]
        return torch.stack(rows)


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
    found = effects(scorer, np.array(history), np.arange(ITEMS), ITEMS, length)
    read = history[-(length - 1) :]
    assert found.item_J.tolist() == sorted(set(read))
    for j, left_out in enumerate(found.item_J.tolist()):
        without = [item for item in history if item != left_out][-(length - 1) :]
        for item in range(ITEMS):
            expected = log_share(scorer, read, item) - log_share(scorer, without, item)
            assert found.effect_JK[j, item] == pytest.approx(expected, abs=1e-4)


def test_the_strongest_come_first_for_or_against() -> None:
    m_VV = torch.zeros(ITEMS, ITEMS)
    m_VV[0, 4], m_VV[1, 4], m_VV[2, 4] = 0.5, -2.0, 1.0
    found = effects(Additive(m_VV), np.array([0, 1, 2]), np.array([4]), ITEMS, 10)
    assert [item for item, _ in found.strongest(0, 2)] == [1, 2]
    (_, against), (_, pro) = found.strongest(0, 2)
    assert against < 0 < pro
    assert len(found.strongest(0, 9)) == 3


def test_a_model_that_reads_nothing_has_no_reasons() -> None:
    found = effects(Additive(torch.zeros(ITEMS, ITEMS)), np.array([1, 2]), np.array([0]), ITEMS, 1)
    assert found.strongest(0, 3) == []


@pytest.mark.parametrize(
    ("effect", "text"), [(np.log(1.5), "× 1.50"), (-np.log(1.5), "÷ 1.50"), (0.0, "× 1.00"), (9999.0, "× > 1000")]
)
def test_effects_in_words(effect: float, text: str) -> None:
    assert factor(effect) == text
