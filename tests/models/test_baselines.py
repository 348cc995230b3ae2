from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import kstest

from tests.evaluation.small import histories_of
from tests.scorers import Constant
from unveil.data.interactions import Sequences
from unveil.data.slots import histories, tokens_of
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.metrics import NDCG
from unveil.models.base import BACKBONES, Baseline
from unveil.models.baselines import EPSILON, ItemToItem, LessPopular, Random, fitted, recency
from unveil.training.fit import FEW, BaselineFit, fitted_scale, learner, new_model, validation_of
from unveil.training.recipe import Recipe

NAMES = [name for name in BACKBONES if issubclass(BACKBONES[name], Baseline)]


def dense(name: str, train: Sequences, **constants: float) -> NDArray[np.float32]:
    model = fitted(name, train, **constants)
    assert isinstance(model, ItemToItem)
    return model.dense().numpy()


def drawn(rng: np.random.Generator, users: int, items: int, share: float = 0.4) -> list[list[int]]:
    return [rng.permutation(np.flatnonzero(rng.random(items) < share)).tolist() or [0] for _ in range(users)]


def together(past: list[list[int]], items: int) -> NDArray[np.float64]:
    x_UV = np.zeros((len(past), items))
    for row, history in enumerate(past):
        x_UV[row, history] = 1
    return x_UV.T @ x_UV


def after(model: Baseline, *past: list[int]) -> NDArray[np.float32]:
    return model.scores(tokens_of([np.array(each, np.int64) for each in past], model.n_items, 20)).numpy()


def test_all_baselines_are_found_by_name() -> None:
    assert NAMES == ["ease", "frequency", "item-knn", "markov", "popularity"]


def test_popularity_is_the_smoothed_share_of_the_events() -> None:
    scores = after(fitted("popularity", histories_of([0, 1, 1], [1, 3], n_items=5)), [], [1])
    np.testing.assert_allclose(scores, np.log([[2 / 10, 4 / 10, 1 / 10, 2 / 10, 1 / 10]] * 2), rtol=1e-5)


def test_balanced_popularity_by_hand() -> None:
    """Users of 3 and 2 events: 1 / 8 and 1 / 7 an event."""
    scores = after(fitted("popularity", histories_of([0, 1, 1], [1, 3], n_items=4), balance=1.0), [])
    count = np.array([1 / 8, 2 / 8 + 1 / 7, 0, 1 / 7])
    np.testing.assert_allclose(np.exp(scores[0]), (count + 1) / (count.sum() + 4), rtol=1e-5)


def test_recency_by_hand() -> None:
    """Items 3 0 3 1 after padding: the earlier 3 counts only where each event does."""
    token = torch.tensor([[4, 3, 0, 3, 1, 5]])
    assert recency(token, 4, 0.5).tolist() == [[0, 0, 0.25, 0.5, 1, 0]]
    assert recency(token, 4, 0.5, each_once=False).tolist() == [[0, 0.125, 0.25, 0.5, 1, 0]]
    assert recency(torch.tensor([[5], [5]]), 4, 0.5).tolist() == [[0], [0]]


def test_ease_is_the_ridge_regression_of_each_item_on_the_others() -> None:
    """With the weight of the item itself held at 0: column by column, by the normal equations of the other items."""
    past = drawn(np.random.default_rng(0), 30, 8)
    g_VV, train = together(past, 8), histories_of(*past, n_items=8)
    found = dense("ease", train, penalty=2.0)
    for item in range(8):
        others = np.delete(np.arange(8), item)
        weight = np.linalg.solve(g_VV[np.ix_(others, others)] + 2.0 * np.eye(7), g_VV[others, item])
        np.testing.assert_allclose(found[others, item], weight, atol=1e-5)
        assert found[item, item] == 0
    mean = 100 + 3 * len(train) / 8
    np.testing.assert_allclose(dense("ease", train), dense("ease", train, penalty=mean))


@pytest.mark.parametrize("items", [5, 12, 40])
def test_ease_of_many_items_is_ease_where_each_occurs_with_all_others(items: int) -> None:
    past = drawn(np.random.default_rng(1), 80, items, 0.5)
    assert together(past, items).all()
    exact, sparse = (dense("ease", histories_of(*past, n_items=items), penalty=3.0, exact=most) for most in (items, 0))
    np.testing.assert_allclose(sparse, exact, atol=1e-5)


def test_ease_of_many_items_regresses_each_on_those_it_occurs_with_most() -> None:
    """Brute force for 120 items, 50 others each: where counts tie at the 50th place either may be taken."""
    past = drawn(np.random.default_rng(2), 3000, 120, 0.15)
    g_VV = together(past, 120)
    found = dense("ease", histories_of(*past, n_items=120), penalty=3.0, exact=0, neighbours=120)
    compared = 0
    for item in range(120):
        g_V = np.where(np.arange(120) == item, -1, g_VV[item])
        order = np.argsort(-g_V, kind="stable")
        if g_V[order[49]] == g_V[order[50]]:
            continue
        most, compared = order[:50], compared + 1
        weight = np.linalg.solve(g_VV[np.ix_(most, most)] + 3.0 * np.eye(50), g_V[most])
        np.testing.assert_allclose(found[most, item], weight, atol=1e-4)
        assert not found[order[50:], item].any()
    assert compared > 5


def test_similarities_by_hand_and_recent_items_count_more() -> None:
    train = histories_of([0, 1], [0, 1], [2, 3], n_items=4)
    weight = np.zeros((4, 4))
    weight[0, 1] = weight[1, 0] = 2 / (2 + 1)
    weight[2, 3] = weight[3, 2] = 1 / (1 + 1)
    for neighbours in (1, 4):
        knn = fitted("item-knn", train, neighbours=neighbours, shrink=1.0, decay=0.5)
        np.testing.assert_allclose(dense("item-knn", train, neighbours=neighbours, shrink=1.0), weight)
        x = np.array([[0.5, 0, 1, 0], [0, 0, 1, 0]])
        share = np.array([3, 3, 2, 2]) / 10
        np.testing.assert_allclose(after(knn, [0, 2, 0, 2], [2]), x @ weight + EPSILON * share, rtol=1e-5)


@pytest.mark.parametrize("items", [12, 400])
def test_the_nearest_neighbours_are_kept_whatever_the_size(items: int) -> None:
    """Against all similarities by brute force; many items take another path than few."""
    past = drawn(np.random.default_rng(3), 50, items, 4 / items)
    g_VV = together(past, items)
    norm = np.sqrt(np.diag(g_VV))
    all_VV = g_VV / (np.outer(norm, norm) + 2.0) * (1 - np.eye(items))
    train = histories_of(*past, n_items=items)
    np.testing.assert_allclose(dense("item-knn", train, shrink=2.0, neighbours=items), all_VV, atol=1e-6)
    some_VV = dense("item-knn", train, shrink=2.0, neighbours=3)
    assert ((some_VV > 0).sum(1) <= 3).all()
    np.testing.assert_allclose(np.sort(some_VV)[:, -3:], np.sort(all_VV)[:, -3:], atol=1e-6)
    np.testing.assert_allclose(some_VV[some_VV > 0], all_VV[some_VV > 0], atol=1e-6)


def test_a_first_order_markov_chain_by_hand() -> None:
    """0 → 1 twice and 0 → 2 once; nothing follows 2, whose row is the share."""
    train = histories_of([0, 1], [0, 1], [0, 2], n_items=3)
    chain = fitted("markov", train, window=1, smoothing=2.0, decay=1e-6)
    share = np.array([4, 3, 2]) / 9
    after_0 = (np.array([0, 2, 1]) + 2 * share) / (3 + 2)
    np.testing.assert_allclose(np.exp(after(chain, [2, 0], [2], [])), [after_0, share, share], rtol=1e-4)


def test_a_markov_chain_is_a_mixture_of_its_rows() -> None:
    """Brute force: transitions within the window by loops, the last events by their age; probabilities sum to 1."""
    rng = np.random.default_rng(4)
    past = [rng.integers(0, 7, rng.integers(1, 9)).tolist() for _ in range(20)]
    n, count = np.zeros((7, 7)), np.zeros(7)
    for history in past:
        for place, one in enumerate(history):
            count[one] += 1
            for distance in range(1, 4):
                if place + distance < len(history):
                    n[one, history[place + distance]] += 0.6 ** (distance - 1)
    share = (count + 1) / (count.sum() + 7)
    p = (n + 1.5 * share) / (n.sum(1, keepdims=True) + 1.5)
    chain = fitted("markov", histories_of(*past, n_items=7), window=3, fade=0.6, smoothing=1.5, decay=0.7)
    weights = np.array([0.7, 1.0, 0.49])  # of 2, 5 and 3 after 5 3 2 5: the earlier 5 does not count
    expected = weights @ p[[2, 5, 3]] / weights.sum()
    (found,) = np.exp(after(chain, [5, 3, 2, 5]))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found.sum() == pytest.approx(1, abs=1e-5)


def test_frequency_by_hand() -> None:
    """After 1 2 1: item 1 has ages 2 and 0; items that were never met stand by popularity."""
    train = histories_of([1, 2, 2], n_items=4)
    own = fitted("frequency", train, decay=0.5, smoothing=0.1)
    share = np.array([1, 2, 3, 1]) / 7
    expected = np.log(np.array([[0, 1.25, 0.5, 0], [0, 0, 0, 0]]) + 0.1 * share)
    np.testing.assert_allclose(after(own, [1, 2, 1], []), expected, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_batch_and_the_padding_do_not_matter(name: str) -> None:
    rng = np.random.default_rng(5)
    few = {"neighbours": 4} if name in ("markov", "item-knn") else {}
    model = fitted(name, histories_of(*drawn(rng, 40, 30), n_items=30), **few)
    past = [rng.integers(0, 30, size).tolist() for size in (0, 1, 3, 12)]
    alone = np.concatenate([after(model, each) for each in past])
    np.testing.assert_allclose(after(model, *past), alone, rtol=1e-5, atol=1e-6)
    assert np.isfinite(alone).all()
    best, most = after(model, [])[0].argmax(), model.share.argmax()
    assert best == most, "a new user gets what is popular"


@pytest.mark.parametrize("name", NAMES)
def test_a_calibration_is_added_to_the_scores(name: str) -> None:
    model = fitted(name, histories_of([0, 1, 2], [1, 2, 3], n_items=5))
    before, shift = after(model, [1, 2], []), torch.linspace(-1, 1, 5)
    model.bias += shift
    np.testing.assert_allclose(after(model, [1, 2], []), before + shift.numpy(), atol=1e-5)


def walks(users: int = 300, items: int = 12) -> Sequences:
    """Users who go on to the next item, most of the time."""
    rng = np.random.default_rng(6)
    steps = [np.where(rng.random(8) < 0.8, 1, rng.integers(0, items, 8)) for _ in range(users)]
    return histories_of(*(((rng.integers(0, items) + each.cumsum()) % items).tolist() for each in steps), n_items=items)


def test_the_decay_is_the_best_on_the_validation_cases_alone() -> None:
    split = leave_one_out(walks())
    recipe = Recipe().changed({"model.name": "markov"})
    validation, fit = validation_of(split, recipe), learner(split.train, recipe)
    best = fit.fit(validation).best
    figures = {}
    assert isinstance(fit, BaselineFit)
    for decay in fit.model.decays:
        other = fitted("markov", split.train, decay=decay)
        ranks = Evaluator.of(split.valid, split.whole, split.train, length=1000, uniform=0, popular=0).ranks(other)
        figures[decay] = float(NDCG()(ranks, 10).mean())
    assert best is not None
    assert best.value == pytest.approx(max(figures.values()))
    assert figures[fit.model.decay] == pytest.approx(best.value)
    given = learner(split.train, recipe.changed({"model.decay": 0.9}))
    given.fit(validation)
    assert given.model.decay == 0.9


def test_few_validation_cases_are_enough_for_a_baseline() -> None:
    split = leave_one_out(walks(FEW + 50))
    assert len(validation_of(split, Recipe().changed({"model.name": "ease"})).evaluator.cases) == FEW
    assert len(validation_of(split, Recipe()).evaluator.cases) == FEW + 50


def test_the_scale_is_the_most_likely_one() -> None:
    split = leave_one_out(walks())
    model = fitted("item-knn", split.train)
    assert isinstance(model, ItemToItem)
    evaluator = validation_of(split, Recipe().changed({"model.name": "item-knn"})).evaluator
    scale = float(fitted_scale(model, evaluator))
    token_BL = histories(split.whole, split.valid.user_C, split.valid.seen_C, 1000)
    target_B = torch.from_numpy(split.valid.item_C.astype(np.int64))

    def likelihood(a: float) -> float:
        return float((a * model.scores(token_BL)).log_softmax(1).gather(1, target_B[:, None]).sum())

    assert likelihood(scale) > max(likelihood(scale * 1.02), likelihood(scale / 1.02))
    assert scale > 1


def test_a_baseline_shares_no_setting_with_a_network_and_has_no_estimator() -> None:
    quick = Recipe.preset("quick", "ease")
    assert quick.model.length == 1000
    assert quick.changed({"model.name": "sasrec"}).model.length == 100
    with pytest.raises(UnveilError, match="no estimator trains it: found '-e itps --model ease'"):
        Recipe().changed({"estimator.name": "itps", "model.name": "ease"})
    with pytest.raises(UnveilError, match=r"unknown setting: found 'model\.width'"):
        Recipe().changed({"model.name": "ease", "model.width": 8})
    with pytest.raises(UnveilError, match="a baseline is not trained"):
        new_model(quick, 5)


@pytest.mark.parametrize("name", NAMES)
def test_constants_out_of_range_are_refused(name: str) -> None:
    config = BACKBONES[name].Config()
    with pytest.raises(UnveilError, match=r"model\.length"):
        replace(config, length=0)
    if hasattr(config, "decay"):
        with pytest.raises(UnveilError, match=r"model\.decay"):
            replace(config, decay=0.0)  # type: ignore[call-arg]


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
