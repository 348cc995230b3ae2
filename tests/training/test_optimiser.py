"""Learning rates by hand, and what holds for all of them."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from unveil.training.optimiser import EPSILON, AdamW, WeightAverage, learning_rate
from unveil.training.recipe import SCHEDULES, TrainerConfig

SHAPES = [(5, 3), (4,), (2, 3, 2), ()]


def drawn(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, requires_grad=True) for shape in SHAPES]


def give_gradients(parameters: list[Tensor], seed: int) -> None:
    for parameter, gradient in zip(parameters, drawn(seed), strict=True):
        parameter.grad = gradient.detach()


def test_a_step_by_hand() -> None:
    """After one step m̂ = g and v̂ = g²: the step is η · g / (|g| + ε), after the decay."""
    matrix, vector = torch.tensor([[2.0]], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    matrix.grad, vector.grad = torch.tensor([[0.5]]), torch.tensor([-0.5])
    AdamW([matrix, vector], weight_decay=0.1).step(0.01)
    assert matrix.item() == pytest.approx(2 * (1 - 0.01 * 0.1) - 0.01)
    assert vector.item() == pytest.approx(2 + 0.01)


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)])
def test_against_the_equations(decay: float, betas: tuple[float, float]) -> None:
    parameters = drawn(0)
    optimiser = AdamW(parameters, betas, decay)
    expected = [parameter.detach().double() for parameter in parameters]
    mean, square = ([torch.zeros_like(each) for each in expected] for _ in range(2))
    for step in range(1, 8):
        lr = 0.1 / step
        give_gradients(parameters, step)
        for n, parameter in enumerate(parameters):
            assert parameter.grad is not None
            gradient = parameter.grad.double()
            mean[n] = betas[0] * mean[n] + (1 - betas[0]) * gradient
            square[n] = betas[1] * square[n] + (1 - betas[1]) * gradient**2
            root = (square[n] / (1 - betas[1] ** step)).sqrt() + EPSILON
            kept = 1 - lr * decay if parameter.ndim > 1 else 1.0
            expected[n] = kept * expected[n] - lr * mean[n] / (1 - betas[0] ** step) / root
        optimiser.step(lr)
    for parameter, wanted in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.detach().double(), wanted, rtol=1e-5, atol=1e-6)


def test_bit_for_bit_as_torch_does_it() -> None:
    mine, theirs = drawn(0), drawn(0)
    optimiser = AdamW(mine, weight_decay=0.1)
    groups: list[dict[str, Any]] = [
        {"params": [p for p in theirs if p.ndim > 1]},
        {"params": [theirs[1], theirs[3]], "weight_decay": 0.0},
    ]
    other = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1, fused=True)
    for step in range(20):
        give_gradients(mine, step)
        give_gradients(theirs, step)
        optimiser.step(0.01)
        other.step()
    for one, two in zip(mine, theirs, strict=True):
        assert torch.equal(one, two)
        assert optimiser.state[one].keys() == other.state[two].keys()
        assert all(torch.equal(optimiser.state[one][name], value) for name, value in other.state[two].items())


def test_what_has_no_gradient_stays_and_has_no_state() -> None:
    parameters = drawn(0)
    give_gradients(parameters, 1)
    parameters[0].grad = None
    before = parameters[0].detach().clone()
    optimiser = AdamW(parameters, weight_decay=0.5)
    optimiser.step(0.1)
    assert torch.equal(parameters[0], before)
    assert not optimiser.state[parameters[0]]
    optimiser.zero_grad()
    assert all(parameter.grad is None for parameter in parameters)


def test_training_imports_no_compiler() -> None:
    code = "import sys, tests.training.cyclic as cyclic; cyclic.train(); assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


PER_EPOCH = 4
BASE = TrainerConfig(epochs=10, lr=1.0)


def rates(config: TrainerConfig) -> list[float]:
    return [learning_rate(config, step, PER_EPOCH) for step in range(config.epochs * PER_EPOCH)]


def test_constant_stays() -> None:
    assert set(rates(BASE)) == {1.0}


def test_warm_up_rises_to_the_full_rate_on_its_last_step() -> None:
    assert rates(replace(BASE, warmup=2))[:9] == [n / 8 for n in range(1, 9)] + [1.0]


def test_linear_falls_evenly_from_the_end_of_the_warm_up_to_the_end() -> None:
    found = rates(replace(BASE, schedule="linear", warmup=2))
    assert found[:8] == [n / 8 for n in range(1, 9)]
    assert found[8:] == pytest.approx([1 - n / 32 for n in range(32)])


def test_cosine_is_half_way_down_in_the_middle() -> None:
    found = rates(replace(BASE, schedule="cosine"))
    assert found[0] == 1
    assert found[20] == pytest.approx(0.5)
    assert found[10] == pytest.approx((1 + 0.5**0.5) / 2)


def test_step_drops_once_to_a_tenth() -> None:
    found = rates(replace(BASE, schedule="step", step_epoch=3))
    assert found == [1.0] * 12 + [pytest.approx(0.1)] * 28


@given(st.sampled_from(SCHEDULES), st.floats(0, 12), st.integers(1, 10), st.integers(1, 7))
def test_rates_lie_between_nothing_and_the_full_rate(schedule: str, warmup: float, epochs: int, per_epoch: int) -> None:
    config = replace(BASE, schedule=schedule, warmup=warmup, epochs=epochs)  # type: ignore[arg-type]
    assert all(0 <= learning_rate(config, step, per_epoch) <= 1 for step in range(epochs * per_epoch))


def test_the_average_of_weights_against_its_equation() -> None:
    model = torch.nn.Linear(3, 2)
    average, expected = WeightAverage(0.9), model.weight.detach().double()
    for n in range(1, 40):
        with torch.no_grad():
            model.weight += torch.randn(2, 3, generator=torch.Generator().manual_seed(n))
        average.update(model, n)
        if n > 1:  # the first update begins with the weights as they are
            decay = min(0.9, (1 + n) / (10 + n))
            expected = decay * expected + (1 - decay) * model.weight.detach().double()
        else:
            expected = model.weight.detach().double()
    assert average.weights["weight"].double().numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    own = model.weight.detach().clone()
    with average.applied(model):
        assert torch.equal(model.weight, average.weights["weight"])
    assert torch.equal(model.weight, own)


def test_no_average_changes_nothing() -> None:
    model, average = torch.nn.Linear(3, 2), WeightAverage(0.0)
    own = model.weight.detach().clone()
    average.update(model, 1)
    with average.applied(model):
        assert torch.equal(model.weight, own)
