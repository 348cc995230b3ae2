import numpy as np
import pytest
import torch
from scipy.stats import kstest

from tests.evaluation.small import histories_of
from unveil.data.slots import tokens_of
from unveil.models.baselines import Constant, LessPopular, Popularity, Random


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
