"""Recipes: gradients by hand, and what each recipe finds."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.models.tensor_factorization.tiny import from_factors, some
from unveil.errors import UnveilError
from unveil.models.tensor_factorization.recipes import RECIPES, Descent, FittedFactors, Side, Sides
from unveil.models.tensor_factorization.task import Negatives, Task, split

SHAPE = (5, 6, 4)


def sides(width: int = 3, seed: int = 0) -> Sides:
    rng = np.random.default_rng(seed)
    users, items, steps = (Side.of(rng.standard_normal((size, width))) for size in SHAPE)
    return users, items, steps


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 3.0])
def test_the_gradient_is_that_of_the_loss_and_reaches_every_factor(logistic: bool, penalty: float) -> None:
    tuples = some(60, SHAPE)
    value = torch.tensor(tuples.value_N > 0 if logistic else tuples.value_N, dtype=torch.float32)
    index = [torch.from_numpy(side) for side in tuples.sides]
    state = Descent(sides(), 200, logistic=logistic, penalty=penalty)
    state.gradient(index, value)
    tables = [side.table_RK.clone().requires_grad_() for side in state.sides]
    logit = (tables[0][index[0]] * tables[1][index[1]] * tables[2][index[2]]).sum(1)
    loss = F.binary_cross_entropy_with_logits(logit, value) if logistic else F.mse_loss(logit, value)
    whole = loss + penalty / 400 * sum((table**2).sum() for table in tables)
    for side, grad_RK in zip(state.sides, torch.autograd.grad(whole, tables), strict=True):
        assert side.table_RK.grad is not None
        torch.testing.assert_close(side.table_RK.grad, grad_RK)
        assert (side.table_RK.grad != 0).all()


def test_columns_that_are_not_learnt_stay() -> None:
    users, items, steps = sides()
    fixed = Side.of(items.table_RK.numpy().astype(float), None, np.array([True, False, True]))
    before = fixed.table_RK.clone()
    Descent((users, fixed, steps), 60, logistic=False).epoch(some(60, SHAPE), np.random.default_rng(0))
    assert (fixed.table_RK[:, 1] == before[:, 1]).all()
    assert (fixed.table_RK[:, [0, 2]] != before[:, [0, 2]]).all()


def test_a_strong_penalty_draws_a_table_to_its_rest() -> None:
    users, items, steps = sides()
    drawn = Side.of(steps.table_RK.numpy().astype(float), np.ones(3))
    state = Descent((users, items, drawn), 60, logistic=False, lr=0.05, penalty=1e5)
    for _ in range(200):
        state.epoch(some(60, SHAPE), np.random.default_rng(0))
    torch.testing.assert_close(drawn.table_RK, torch.ones(4, 3), atol=0.1, rtol=0)


def test_the_loss_falls() -> None:
    tuples, _ = from_factors(100, SHAPE, seed=0)
    state = Descent(sides(), 100, logistic=False, batch=16, lr=0.01)

    def loss() -> float:
        return float(((state.factors().logits_of(*tuples.sides) - tuples.value_N) ** 2).mean())

    before = loss()
    for seed in range(60):
        state.epoch(tuples, np.random.default_rng(seed))
    assert loss() < before / 5


SMALL: dict[str, dict[str, Any]] = {
    "paper": {"width": 4, "epochs": 5, "batch": 64, "lr": 0.01},
    "regularised": {"width": 4, "epochs": 5},
    "posterior": {"width": 3, "sweeps": 6, "burn_in": 3},
}
TUPLES, _ = from_factors(1500, (30, 25, 8), seed=0)


def task(name: str, *, redraw: bool = True) -> Task:
    parts = split(TUPLES, np.random.default_rng(0))
    if name == "relevance":
        return Task.of_ratings(parts)
    return Task.of_exposure(parts, Negatives(TUPLES), np.random.default_rng(1), redraw=redraw)


def learn(recipe: str, of: Task, seed: int = 0) -> tuple[FittedFactors, int]:
    done: list[int] = []
    learnt = RECIPES.build(recipe, SMALL.get(recipe, {})).learn(of, np.random.default_rng(seed), done.append)
    return learnt, sum(done)


@pytest.mark.parametrize("of", ["relevance", "exposure"])
@pytest.mark.parametrize("recipe", list(RECIPES))
class TestEveryRecipe:
    def test_it_does_the_work_it_announced(self, recipe: str, of: str) -> None:
        assert learn(recipe, task(of))[1] == RECIPES.build(recipe, SMALL.get(recipe, {})).work(task(of))

    def test_it_gives_finite_factors_of_the_right_size_and_all_its_predictions(self, recipe: str, of: str) -> None:
        asked = task(of)
        learnt, _ = learn(recipe, asked)
        assert learnt.factors.shape == TUPLES.shape
        assert all(np.isfinite(table).all() for table in vars(learnt.factors).values())
        assert len(learnt.valid_N) == len(asked.parts.valid)
        assert len(learnt.test_N) == len(asked.parts.test)
        if of == "exposure":
            assert ((learnt.test_N >= 0) & (learnt.test_N <= 1)).all()

    def test_every_side_matters(self, recipe: str, of: str) -> None:
        factors = learn(recipe, task(of))[0].factors
        for side in range(3):
            two = [np.zeros(2, int), np.zeros(2, int), np.zeros(2, int)]
            two[side] = np.array([0, 1])
            one, other = factors.logits_of(*two)
            assert one != other

    def test_it_is_the_seed_s(self, recipe: str, of: str) -> None:
        one, same, other = (learn(recipe, task(of), seed)[0] for seed in (0, 0, 1))
        np.testing.assert_array_equal(one.factors.Q_VK, same.factors.Q_VK)
        np.testing.assert_array_equal(one.test_N, same.test_N)
        assert (one.test_N != other.test_N).any()


def test_negatives_are_drawn_anew_for_each_epoch_unless_fixed() -> None:
    rng = np.random.default_rng(0)
    anew, fixed = task("exposure"), task("exposure", redraw=False)
    assert (anew.epoch(rng).key_N != anew.epoch(rng).key_N).any()
    np.testing.assert_array_equal(fixed.epoch(rng).key_N, fixed.epoch(rng).key_N)
    assert len(anew.epoch(rng)) == len(fixed.epoch(rng)) == anew.size == fixed.size == 4 * 1200
    for asked in (anew, fixed):
        assert not set(asked.epoch(rng).key_N[1200:].tolist()) & set(TUPLES.key_N.tolist())


def test_the_best_epoch_is_kept_where_asked() -> None:
    of = task("relevance")
    options = {"width": 4, "epochs": 60, "lr": 0.03}
    last, best = (
        RECIPES.build("paper", {**options, "keep_best": keep}).learn(of, np.random.default_rng(0), lambda n: None)
        for keep in (False, True)
    )
    assert of.loss(best.valid_N, of.parts.valid) < of.loss(last.valid_N, of.parts.valid)


@pytest.mark.parametrize(
    ("recipe", "options", "says"),
    [
        ("posterior", {"width": 0}, r"posterior\.width: .*found 0, expected at least 1"),
        ("posterior", {"sweeps": 10, "burn_in": 10}, r"posterior\.burn_in: .*found 10, expected 0 to 9"),
        ("posterior", {"persistence": 1.0}, r"posterior\.persistence: .*expected 0 to 0\.999"),
        ("paper", {"batch": 0}, r"paper\.batch"),
        ("paper", {"epochs": 0}, r"paper\.epochs"),
        ("regularised", {"lr": float("nan")}, r"regularised\.lr"),
        ("regularised", {"penalty": -1.0}, r"regularised\.penalty"),
    ],
)
def test_options_out_of_range_are_refused(recipe: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(UnveilError, match=says):
        RECIPES.build(recipe, options)
