import numpy as np
import pytest
import torch
from scipy.stats import kstest

from tests.evaluation.small import histories_of
from tests.scorers import Constant
from unveil.data.slots import tokens_of
from unveil.models.baselines import ItemToItem, LessPopular, Popularity, Random


def test_popularity_scores_by_training_count() -> None:
    scorer = Popularity.fit(histories_of([0, 1, 1], [1, 3], n_items=5))
    assert scorer.scores(torch.zeros(2, 3, dtype=torch.int64)).tolist() == [[1, 3, 0, 1, 0]] * 2


def test_constant_knows_nothing() -> None:
    assert Constant(4).scores(torch.zeros(2, 3, dtype=torch.int64)).tolist() == [[0] * 4] * 2


def test_random_answers_the_same_question_the_same_way() -> None:
    scorer, past = Random(50, seed=3), [np.array([1, 2, 3]), np.array([7])]
    together = scorer.scores(tokens_of(past, 50, 10))
    alone = torch.cat([scorer.scores(tokens_of([one], 50, 10)) for one in past])
    assert torch.equal(together, alone)
    assert not torch.equal(together, Random(50, seed=4).scores(tokens_of(past, 50, 10)))


def test_random_tells_histories_apart_by_order_too() -> None:
    scores = Random(50).scores(tokens_of([np.array([1, 2]), np.array([2, 1])], 50, 10))
    assert not torch.equal(scores[0], scores[1])


def test_random_is_uniform_over_items_and_over_histories() -> None:
    scores = Random(400).scores(tokens_of([np.array([a, b]) for a in range(20) for b in range(20)], 400, 5)).numpy()
    assert scores.min() >= 0
    assert scores.max() < 1
    assert kstest(scores.ravel(), "uniform").pvalue > 0.001
    assert kstest(scores.mean(axis=0) * 400 - 200, "norm", args=(0, np.sqrt(400 / 12))).pvalue > 0.001
    assert kstest(scores.mean(axis=1) * 400 - 200, "norm", args=(0, np.sqrt(400 / 12))).pvalue > 0.001


def test_less_popular_by_hand() -> None:
    count_V = torch.tensor([5.0, 2.0, 0.0])  # θ̂ = (6, 3, 1) / 10
    scorer = LessPopular(Constant(3).scores, count_V, strength=2.0)
    expected = [-2 * np.log(0.6), -2 * np.log(0.3), -2 * np.log(0.1)]
    assert scorer.scores(torch.zeros(1, 2, dtype=torch.int64))[0].tolist() == pytest.approx(expected)


def test_balanced_popularity_by_hand() -> None:
    """Users of 3 and 2 events: 1 / 8 and 1 / 7 an event."""
    scorer = Popularity.fit(histories_of([0, 1, 1], [1, 3], n_items=4), balance=1.0)
    expected = torch.tensor([[1 / 8, 2 / 8 + 1 / 7, 0, 1 / 7]])
    torch.testing.assert_close(scorer.scores(torch.zeros(1, 1, dtype=torch.int64)), expected)


def test_ease_is_the_ridge_regression_of_each_item_on_the_others() -> None:
    """With the weight of the item itself held at 0: column by column, by the normal equations of the other items."""
    rng = np.random.default_rng(0)
    histories = [np.flatnonzero(rng.random(8) < 0.4).tolist() or [0] for _ in range(30)]
    found = ItemToItem.ease(histories_of(*histories, n_items=8), penalty=2.0).weight_VV.numpy()
    x_UV = np.zeros((30, 8))
    for row, history in enumerate(histories):
        x_UV[row, history] = 1
    for item in range(8):
        others = np.delete(np.arange(8), item)
        left = x_UV[:, others].T @ x_UV[:, others] + 2.0 * np.eye(7)
        weight = np.linalg.solve(left, x_UV[:, others].T @ x_UV[:, item])
        np.testing.assert_allclose(found[others, item], weight, atol=1e-4)
        assert found[item, item] == 0


def test_neighbours_of_recent_items_count_more() -> None:
    train = histories_of([0, 1], [0, 1], [2, 3], n_items=4)
    knn = ItemToItem.knn(train, neighbours=4, shrink=1.0, decay=0.5)
    expected = torch.zeros(4, 4)
    expected[0, 1] = expected[1, 0] = 2 / (2 + 1)
    expected[2, 3] = expected[3, 2] = 1 / (1 + 1)
    torch.testing.assert_close(knn.weight_VV, expected)
    scores = knn.scores(tokens_of([np.array([0, 2, 0, 2]), np.array([2])], 4, 10))
    torch.testing.assert_close(scores, torch.tensor([[0, 0.5 * 2 / 3, 0, 1 / 2], [0, 0, 0, 1 / 2]]))


def test_only_the_nearest_neighbours_are_kept() -> None:
    knn = ItemToItem.knn(histories_of([0, 1], [0, 1], [0, 2], n_items=3), neighbours=1, shrink=0.0)
    assert knn.weight_VV[0].nonzero().flatten().tolist() == [1]
