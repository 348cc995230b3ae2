import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.ranking import rank_among, rank_among_all, top_items

INF = float("inf")


def cells(mask_BV: np.ndarray) -> tuple[Tensor, Tensor]:
    row, item = np.nonzero(mask_BV)
    return torch.from_numpy(row), torch.from_numpy(item)


NONE = cells(np.zeros((1, 1), bool))


def test_ties_go_against_the_target() -> None:
    scores = torch.tensor([[0.5, 0.9, 0.5, 0.1]])
    assert rank_among_all(scores, torch.tensor([0]), NONE).tolist() == [3]
    assert rank_among_all(scores, torch.tensor([2]), NONE).tolist() == [3]
    assert rank_among(scores, torch.tensor([0]), torch.tensor([[2, 3]])).tolist() == [2]


def test_a_barred_rival_does_not_compete_and_a_barred_target_does() -> None:
    scores, seen = torch.tensor([[0.5, 0.9, 0.7, 0.1]]), cells(np.array([[1, 1, 0, 0]], bool))
    assert rank_among_all(scores, torch.tensor([3]), seen).tolist() == [2]
    assert rank_among_all(scores, torch.tensor([0]), seen).tolist() == [2]


def test_a_target_that_scores_minus_infinity_is_last_of_those_that_compete() -> None:
    scores, seen = torch.tensor([[-INF, 0.9, -INF, 0.1]]), cells(np.array([[0, 1, 0, 0]], bool))
    assert rank_among_all(scores, torch.tensor([0]), seen).tolist() == [3]


def test_equal_scores_are_listed_by_item() -> None:
    scores = torch.tensor([[1.0, 2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0, 3.0]])
    assert top_items(scores, 3, NONE).tolist() == [[1, 3, 0], [0, 1, 2]]


def test_what_must_not_be_listed_leaves_its_place_empty() -> None:
    scores, seen = torch.tensor([[0.5, -INF, 0.7, 0.1]]), cells(np.array([[0, 0, 1, 0]], bool))
    assert top_items(scores, 3, seen).tolist() == [[0, 3, NOBODY]]
    assert top_items(scores, 6, seen).tolist() == [[0, 3, NOBODY, NOBODY, NOBODY, NOBODY]]


def test_nothing_is_written_into_the_scores() -> None:
    scores, seen = torch.arange(4.0).expand(2, -1), cells(np.array([[1, 0, 0, 1], [0, 1, 0, 0]], bool))
    rank_among_all(scores, torch.tensor([0, 1]), seen)
    top_items(scores, 2, seen)
    assert scores.tolist() == [[0, 1, 2, 3]] * 2


@given(seed=st.integers(0, 10_000), levels=st.integers(1, 30), k=st.integers(1, 12))
def test_against_plain_sorting(seed: int, levels: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    score_BV = rng.integers(0, levels, (4, 11)).astype(np.float32)
    score_BV[rng.random((4, 11)) < 0.1] = -np.inf
    seen_BV, item_B = rng.random((4, 11)) < 0.3, rng.integers(0, 11, 4)
    scores, seen = torch.from_numpy(score_BV), cells(seen_BV)
    rank_B = rank_among_all(scores, torch.from_numpy(item_B), seen).tolist()
    top_BK = top_items(scores, k, seen).tolist()
    for score, barred, item, rank, top in zip(score_BV, seen_BV, item_B, rank_B, top_BK, strict=True):
        rivals = [v for v in range(11) if v != item and not barred[v]]
        worst_first = sorted([*rivals, item], key=lambda v: (-score[v], v == item))
        assert rank == worst_first.index(item) + 1
        best = sorted((v for v in range(11) if not barred[v] and score[v] > -np.inf), key=lambda v: (-score[v], v))
        assert top == (best + [NOBODY] * k)[:k]


@given(seed=st.integers(0, 10_000), levels=st.integers(1, 8))
def test_sampled_ranks_against_counting(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    score_BV = rng.integers(0, levels, (3, 9)).astype(np.float32)
    order_BV = np.array([rng.permutation(9) for _ in range(3)])
    item_B, negative_BN = order_BV[:, 0], order_BV[:, 1:5]
    rank_B = rank_among(torch.from_numpy(score_BV), torch.from_numpy(item_B), torch.from_numpy(negative_BN))
    expected = [1 + sum(s[n] >= s[i] for n in row) for s, i, row in zip(score_BV, item_B, negative_BN, strict=True)]
    assert rank_B.tolist() == expected
