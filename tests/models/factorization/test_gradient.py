import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.models.factorization.tiny import from_factors, some
from unveil.models.factorization.gradient import Descent, Side, Sides

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
    state = Descent(logistic, penalty=penalty).epochs(sides(), size=200)
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
    Descent(False).epochs((users, fixed, steps), 60).epoch(some(60, SHAPE), np.random.default_rng(0))
    assert (fixed.table_RK[:, 1] == before[:, 1]).all()
    assert (fixed.table_RK[:, [0, 2]] != before[:, [0, 2]]).all()


def test_a_strong_penalty_draws_a_table_to_its_rest() -> None:
    users, items, steps = sides()
    drawn = Side.of(steps.table_RK.numpy().astype(float), np.ones(3))
    state = Descent(False, lr=0.05, penalty=1e5).epochs((users, items, drawn), 60)
    for _ in range(200):
        state.epoch(some(60, SHAPE), np.random.default_rng(0))
    torch.testing.assert_close(drawn.table_RK, torch.ones(4, 3), atol=0.1, rtol=0)


def test_the_loss_falls() -> None:
    tuples, _ = from_factors(100, SHAPE, seed=0)
    state = Descent(False, batch=16, lr=0.01).epochs(sides(), 100)

    def loss() -> float:
        return float(((state.factors().logits_of(*tuples.sides) - tuples.value_N) ** 2).mean())

    before = loss()
    for seed in range(60):
        state.epoch(tuples, np.random.default_rng(seed))
    assert loss() < before / 5
