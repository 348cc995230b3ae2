"""The rational choice: its likelihood by enumeration, and what its smooth form does."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import root
from scipy.special import expit

from tests.estimators.toys import Toy, random_world
from unveil.errors import UnveilError
from unveil.estimators.base import Signal, build, cloze_risk
from unveil.estimators.inverse import weight_diagnostics
from unveil.propensity.joint import choice_loss
from unveil.propensity.known import KnownTemporal
from unveil.simulation.choice import CHOICES

TOY = Toy.drawn(random_world())


def test_rivals_are_weighed_by_how_surely_they_were_shown() -> None:
    theta = KnownTemporal(TOY.world)
    signal = build("rational", {"highest": 0.8}, propensity=theta)(TOY.slots)
    assert torch.equal(signal.target_M, TOY.slots.item_M)
    assert signal.rival_MV is not None
    expected = -np.log(1 - np.minimum(theta.of_all(TOY.slots).numpy(), 0.8))
    np.testing.assert_allclose(signal.rival_MV[:].numpy(), expected, rtol=1e-4)
    assert weight_diagnostics(build("rational", {}, propensity=theta), TOY.slots) is None


def chance(theta_V: np.ndarray, f_V: np.ndarray) -> np.ndarray:
    """P(i taken) by a user who takes the best of what is exposed: all that can be exposed, enumerated."""
    shown_SV = np.array(list(product([False, True], repeat=len(theta_V))))
    p_S = np.where(shown_SV, theta_V, 1 - theta_V).prod(1)
    f_SV = np.tile(f_V, (len(shown_SV), 1))
    return np.asarray(p_S @ CHOICES["rational_exposed"]().probability(f_SV, shown_SV))


def test_the_likelihood_is_that_of_all_that_can_be_exposed() -> None:
    """`choice_loss` with 1[f_j > f_i] for better is −log P(i taken) by the world's own users, for every item.

    And it is −log θ_i with the a of the estimator for each item that is better: what the smooth form puts together.
    """
    slots = TOY.slots.part(0, 5)
    at = slots.user_M.numpy(), slots.step_M.numpy()
    psi_MV, f_MV = TOY.world.exposure_logits.logits(*at).astype(np.float64), TOY.world.relevance_logits.logits(*at)
    a_MV = build("rational", {"highest": 0.9999}, propensity=KnownTemporal(TOY.world))(slots).rival_MV
    assert a_MV is not None
    for psi, f, a_V in zip(psi_MV, f_MV, a_MV[:].double(), strict=True):
        psi_V, better_VV = torch.from_numpy(psi), torch.from_numpy(f > f[:, None]).double()
        found_V = choice_loss(psi_V, psi_V.expand_as(better_VV), better_VV, torch.ones_like(psi_V))
        np.testing.assert_allclose(found_V, -np.log(chance(expit(psi), f)), rtol=1e-4)  # P(better) is cut below 1
        torch.testing.assert_close(found_V, better_VV @ a_V - psi_V.sigmoid().log(), rtol=1e-4, atol=1e-5)


def test_it_ranks_by_taste_what_naive_ranks_by_exposure() -> None:
    """Least expected loss, found by gradient steps on the loss as the trainer computes it: the order is the tastes'."""
    theta_V, taste_V = np.array([0.05, 0.3, 0.6, 0.9]), np.array([3.0, 2.0, 1.0, 0.0])
    taken_V = chance(theta_V, taste_V)
    assert taken_V.argmax() != taste_V.argmax()  # what is taken most is not what is liked most
    f_V = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    rival_MV = torch.from_numpy(-np.log(1 - theta_V)).expand(4, -1)
    signal = Signal(torch.arange(4), torch.from_numpy(taken_V), rival_MV=rival_MV)
    nothing = torch.zeros(4, 1, dtype=torch.float64)
    for _ in range(3000):
        (slope_V,) = torch.autograd.grad(cloze_risk(nothing, nothing, f_V, signal), f_V)
        with torch.no_grad():
            f_V -= slope_V
    assert f_V.argsort(descending=True).tolist() == [0, 1, 2, 3]


def level(f_V: np.ndarray, theta_V: np.ndarray, taken_V: np.ndarray) -> np.ndarray:
    """The slope of the expected loss, as the trainer computes it."""
    n, logit_V = len(f_V), torch.from_numpy(f_V).requires_grad_()
    rival_MV = torch.from_numpy(-np.log1p(-theta_V)).expand(n, -1)
    signal = Signal(torch.arange(n), torch.from_numpy(taken_V), rival_MV=rival_MV)
    nothing = torch.zeros(n, 1, dtype=torch.float64)
    risk = cloze_risk(nothing, nothing, logit_V, signal, normaliser=1.0)
    return np.asarray(torch.autograd.grad(risk, logit_V)[0])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.05, 0.98))
def test_consistent_in_order_for_any_exposure(seed: int, most: float) -> None:
    """The minimum has the order of P(i) / a_i, and that is the order of tastes whatever θ is."""
    rng = np.random.default_rng(seed)
    theta_V, taste_V = rng.uniform(most / 20, most, 5), rng.normal(size=5)
    taken_V = chance(theta_V, taste_V)
    order = np.argsort(-taste_V).tolist()
    assert np.argsort(taken_V / np.log1p(-theta_V)).tolist() == order
    found = root(lambda f_V: np.append(level(f_V, theta_V, taken_V)[1:], f_V.sum()), np.zeros(5), tol=1e-12)
    assert np.abs(level(found.x, theta_V, taken_V)).max() < 1e-8
    assert np.argsort(-found.x).tolist() == order


@pytest.mark.parametrize("highest", [0.0, 1.0, -1.0])
def test_out_of_range(highest: float) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        build("rational", {"highest": highest}, propensity=KnownTemporal(TOY.world))
