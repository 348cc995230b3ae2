"""Choices from random consideration sets: the integral against the sum over all sets, and what its minimum finds."""

from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from tests.estimators.test_corrected import considered_then_chosen, minimiser
from tests.estimators.test_corrected import slope as softmax_slope
from tests.estimators.test_rational import chance as best_of_the_exposed
from tests.estimators.toys import Toy, random_world
from unveil.errors import UnveilError
from unveil.estimators.base import Signal, build, cloze_risk
from unveil.estimators.inverse import weight_diagnostics
from unveil.estimators.losses import race
from unveil.propensity.known import KnownTemporal

Row = NDArray[np.float64]
TOY = Toy.drawn(random_world())


def risk(f_V: Tensor, theta_V: Row, weight_V: Row) -> Tensor:
    """The loss as the trainer computes it, each item once the target, with these weights."""
    n = len(f_V)
    signal = Signal(torch.arange(n), torch.from_numpy(weight_V), theta_MV=torch.from_numpy(theta_V).expand(n, -1))
    nothing = torch.zeros(n, 1, dtype=f_V.dtype)
    return cloze_risk(nothing, nothing, f_V, signal, normaliser=1.0)


def probability(f_V: Row, theta_V: Row, items: int | None = None) -> Row:
    """P(i taken) of the first so many items, as the loss has it."""
    logit_V, theta_1V = torch.from_numpy(f_V), torch.from_numpy(theta_V)[None]
    one, nothing, table_VD = torch.ones(1), torch.zeros(1, 1).double(), torch.zeros(len(f_V), 1).double()
    signals = [Signal(torch.tensor([i]), one, theta_MV=theta_1V) for i in range(items or len(f_V))]
    return np.array([np.exp(-cloze_risk(nothing, table_VD, logit_V, signal).item()) for signal in signals])


def slope(f_V: Row, theta_V: Row, weight_V: Row) -> Row:
    logit_V = torch.from_numpy(f_V).requires_grad_()
    return np.asarray(torch.autograd.grad(risk(logit_V, theta_V, weight_V), logit_V)[0])


@settings(deadline=None, max_examples=25)
@example(755, 3.0, 0.3)  # the first item is so far behind that it wins only where it is alone
@given(st.integers(0, 10_000), st.sampled_from([0.3, 1.0, 3.0, 8.0]), st.sampled_from([0.01, 0.3, 0.95]))
def test_the_integral_is_the_sum_over_all_that_can_be_exposed(seed: int, steepness: float, most: float) -> None:
    rng = np.random.default_rng(seed)
    f_V, theta_V = steepness * rng.normal(size=6), rng.uniform(most / 10, most, 6)
    np.testing.assert_allclose(probability(f_V, theta_V), considered_then_chosen(theta_V, f_V), rtol=0.01)


@pytest.mark.parametrize("items", [1, 2, 3, 5])
def test_few_items(items: int) -> None:
    rng = np.random.default_rng(items)
    f_V, theta_V = rng.normal(size=items), rng.uniform(0.1, 0.9, items)
    np.testing.assert_allclose(probability(f_V, theta_V), considered_then_chosen(theta_V, f_V), rtol=0.01)
    assert np.isfinite(slope(f_V, theta_V, np.ones(items))).all()


def all_at_once(f_V: Tensor, theta_V: Row, weight_V: Row) -> Tensor:
    """−Σ w_i log P(i), summed over all sets, by torch's own autograd."""
    P_V = torch.zeros_like(f_V)
    for seen in product([0.0, 1.0], repeat=len(f_V)):
        shown_V = torch.tensor(seen, dtype=f_V.dtype)
        if shown_V.any():
            p_shown = float(np.prod(np.where(shown_V.numpy() > 0, theta_V, 1 - theta_V)))
            P_V = P_V + p_shown * torch.softmax(f_V + shown_V.log(), 0)
    return -(torch.from_numpy(weight_V) * P_V.log()).sum()


@pytest.mark.parametrize("seed", range(4))
def test_the_slope_is_that_of_the_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f_V, theta_V, weight_V = 2 * rng.normal(size=5), rng.uniform(0.05, 0.95, 5), rng.uniform(size=5)
    logit_V = torch.from_numpy(f_V).requires_grad_()
    exact_V = torch.autograd.grad(all_at_once(logit_V, theta_V, weight_V), logit_V)[0].numpy()
    np.testing.assert_allclose(slope(f_V, theta_V, weight_V), exact_V, atol=0.005)


def test_consistent_where_one_of_the_exposed_is_taken_by_chance() -> None:
    """The expected loss is level at the tastes themselves; that of corrected is not."""
    rng = np.random.default_rng(0)
    theta_V, taste_V = rng.uniform(0.05, 0.9, 5), rng.normal(size=5)
    chance_V = considered_then_chosen(theta_V, taste_V)
    np.testing.assert_allclose(slope(taste_V, theta_V, chance_V), 0, atol=0.002)
    assert np.abs(softmax_slope(taste_V, chance_V, np.log(theta_V))).max() > 0.01


def fitted(theta_V: Row, chance_V: Row) -> Row:
    found = minimize(
        lambda f_V: risk(torch.from_numpy(f_V), theta_V, chance_V).item(),
        np.zeros(len(theta_V)),
        jac=lambda f_V: slope(f_V, theta_V, chance_V),
        options={"gtol": 1e-4},
    )
    return np.asarray(found.x - found.x.mean())


def test_it_finds_the_tastes_that_corrected_only_comes_near() -> None:
    rng, mine, corrected = np.random.default_rng(1), [], []
    for _ in range(4):
        theta_V, taste_V = rng.uniform(0.05, 0.9, 4), rng.normal(size=4)
        chance_V, true_V = considered_then_chosen(theta_V, taste_V), taste_V - taste_V.mean()
        mine.append(np.abs(fitted(theta_V, chance_V) - true_V).mean())
        corrected.append(np.abs(minimiser(chance_V, np.log(theta_V)) - true_V).mean())
    assert np.mean(mine) < 0.02
    assert np.mean(corrected) > 10 * np.mean(mine)


def test_in_the_limit_of_steep_tastes_the_best_of_the_exposed_is_taken() -> None:
    rng = np.random.default_rng(2)
    theta_V, taste_V = rng.uniform(0.1, 0.9, 4), np.array([0.0, 3.7, 7.4, 11.1])
    np.testing.assert_allclose(probability(taste_V, theta_V), best_of_the_exposed(theta_V, taste_V), rtol=0.08)


def test_for_a_user_who_takes_the_best_of_the_exposed_the_order_of_tastes_has_the_least_loss() -> None:
    """Among all orders of steep scores; flat ones fare worse too."""
    theta_V, taste_V = np.array([0.05, 0.3, 0.6, 0.9]), np.array([3.0, 2.0, 1.0, 0.0])
    taken_V = best_of_the_exposed(theta_V, taste_V)
    loss = {
        order: risk(3.7 * torch.tensor(order).double(), theta_V, taken_V).item() for order in permutations(range(4))
    }
    assert min(loss, key=lambda order: loss[order]) == (3, 2, 1, 0)
    assert loss[3, 2, 1, 0] < risk(torch.from_numpy(taste_V), theta_V, taken_V).item()


def test_where_many_are_exposed_it_is_corrected() -> None:
    """What the exposed sum to hardly varies then: P(i) ∝ θ_i e^f_i."""
    rng = np.random.default_rng(3)
    f_V, theta_V = rng.normal(size=400), rng.uniform(0.05, 0.5, 400)
    mass_V = theta_V * np.exp(f_V)
    np.testing.assert_allclose(probability(f_V, theta_V, 9), (mass_V / mass_V.sum())[:9], rtol=0.04)


def test_where_hardly_anything_is_exposed_a_choice_says_nothing_of_tastes() -> None:
    """Nobody sees two items: P(i) is θ_i whatever f is. corrected sees tastes there, and is wrong."""
    rng = np.random.default_rng(3)
    f_V, theta_V = rng.normal(size=5), 1e-4 * rng.uniform(0.1, 1, 5)
    np.testing.assert_allclose(probability(f_V, theta_V), theta_V, rtol=0.01)


@pytest.mark.parametrize(("items", "scale", "most"), [(1003, 1.0, 0.99), (402, 8.0, 1 - 1e-6), (7, 40.0, 0.9)])
def test_single_precision_finds_what_double_finds(items: int, scale: float, most: float) -> None:
    rng = np.random.default_rng(4)
    z_RV, theta_RV = scale * rng.normal(size=(5, items)), rng.uniform(1e-6, most, (5, items))
    target_R1, weight_R1 = (
        torch.from_numpy(rng.integers(items, size=(5, 1))),
        torch.from_numpy(rng.uniform(size=(5, 1))),
    )
    (exact, exact_RV), (mine, mine_RV) = (
        race(torch.tensor(z_RV, dtype=kind), target_R1, weight_R1.to(kind), torch.from_numpy(theta_RV).to(kind), True)
        for kind in (torch.float64, torch.float32)
    )
    assert mine.item() == pytest.approx(exact.item(), rel=1e-4)
    torch.testing.assert_close(mine_RV.double(), exact_RV, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0, 1e3])
def test_extreme_logits_stay_finite(scale: float) -> None:
    rng = torch.Generator().manual_seed(0)
    h_MD, table_VD = scale * torch.randn(20, 4, generator=rng), torch.randn(9, 4, generator=rng)
    theta_MV = torch.rand(20, 9, generator=rng).clamp(1e-6, 0.99)
    h_MD.requires_grad_()
    loss = cloze_risk(h_MD, table_VD, torch.zeros(9), Signal(torch.arange(20) % 9, torch.ones(20), theta_MV=theta_MV))
    assert loss.isfinite()
    assert torch.autograd.grad(loss, h_MD)[0].isfinite().all()


def test_the_signal_is_every_items_exposure_within_bounds() -> None:
    theta = KnownTemporal(TOY.world)
    estimator = build("consideration", {"lowest": 0.2, "highest": 0.6}, propensity=theta)
    signal = estimator(TOY.slots)
    assert signal.theta_MV is not None
    torch.testing.assert_close(signal.theta_MV[:], theta.of_all(TOY.slots).clamp(0.2, 0.6))
    assert weight_diagnostics(estimator, TOY.slots) is None


@pytest.mark.parametrize("options", [{"lowest": 0.0}, {"highest": 1.0}, {"lowest": 0.5, "highest": 0.4}])
def test_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        build("consideration", options, propensity=KnownTemporal(TOY.world))
