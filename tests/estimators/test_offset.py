"""Corrected softmaxes: what they shift, and that they find the preferences behind choices among the exposed."""

from itertools import product

import numpy as np
import pytest
import torch

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Signal, cloze_risk
from unveil.estimators.build import build
from unveil.estimators.corrected import ExposureCorrected
from unveil.estimators.diagnosis import weight_diagnostics
from unveil.estimators.logit_adjustment import LogitAdjustment
from unveil.propensity.build import build as propensity
from unveil.propensity.known import KnownStatic, KnownTemporal

TOY = Toy.drawn(random_world())


@pytest.mark.parametrize(("name", "known"), [("corrected", "known-temporal"), ("logit-adjustment", "known-static")])
def test_the_offset_is_the_logarithm_of_every_items_propensity(name: str, known: str) -> None:
    theta = propensity(known, {}, TOY.train, world=TOY.world)
    signal = build(name, {"strength": 0.5, "clip": 0.3}, propensity=theta)(TOY.slots)
    assert torch.equal(signal.target_M, TOY.slots.item_M)
    assert torch.equal(signal.weight_M, torch.ones(len(TOY.slots)))
    assert signal.offset_MV is not None
    expected = 0.5 * np.log(np.maximum(theta.of_all(TOY.slots).numpy(), 0.3))
    np.testing.assert_allclose(signal.offset_MV[:].numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("moving", [False, True])
def test_logit_adjustment_is_corrected_where_exposure_keeps_still_and_only_there(moving: bool) -> None:
    """With the true exposure of either kind: the same loss, and the same slope at every slot."""
    toy, rng = Toy.drawn(random_world(moving=moving)), torch.Generator().manual_seed(0)
    h_MD = torch.randn(len(toy.slots), 3, generator=rng, requires_grad=True)
    table_VD, bias_V = torch.randn(toy.world.n_items, 3, generator=rng), torch.randn(toy.world.n_items, generator=rng)
    still, corrected = LogitAdjustment(KnownStatic(toy.world)), ExposureCorrected(KnownTemporal(toy.world))
    losses = [cloze_risk(h_MD, table_VD, bias_V, each(toy.slots)) for each in (still, corrected)]
    slopes = [torch.autograd.grad(loss, h_MD)[0] for loss in losses]
    for one, other in (losses, slopes):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6) != moving


def test_nothing_is_weighted_so_there_is_nothing_to_warn_of() -> None:
    estimator = build("corrected", {}, propensity=KnownTemporal(TOY.world))
    assert weight_diagnostics(estimator, TOY.slots) is None


def considered_then_chosen(theta_V: np.ndarray, taste_V: np.ndarray) -> np.ndarray:
    """P(i taken) when each item is considered with probability θ, and i of the considered with P ∝ exp taste.

    By enumeration of what is considered.
    """
    chance_V = np.zeros(len(theta_V))
    for seen in product([0, 1], repeat=len(theta_V)):
        shown = np.array(seen)
        probability = np.prod(np.where(shown, theta_V, 1 - theta_V))
        mass_V = shown * np.exp(taste_V)
        if mass_V.sum():
            chance_V += probability * mass_V / mass_V.sum()
    return chance_V


def slope(f_V: np.ndarray, chance_V: np.ndarray, offset_V: np.ndarray) -> np.ndarray:
    """The gradient, in the logits f, of the expected loss as the trainer computes it."""
    logit_V = torch.from_numpy(f_V).requires_grad_()
    n = len(f_V)
    signal = Signal(torch.arange(n), torch.from_numpy(chance_V), torch.from_numpy(offset_V).expand(n, -1))
    nothing = torch.zeros(n, 1, dtype=torch.float64)
    torch.autograd.backward(cloze_risk(nothing, nothing, logit_V, signal))
    assert logit_V.grad is not None
    return np.asarray(logit_V.grad)


def minimiser(chance_V: np.ndarray, offset_V: np.ndarray) -> np.ndarray:
    """softmax(f + offset) = P(i taken): there the expected loss is least."""
    f_V = np.log(chance_V) - offset_V
    np.testing.assert_allclose(slope(f_V, chance_V, offset_V), 0, atol=1e-9)
    return np.asarray(f_V - f_V.mean())


def test_consistent_where_choices_follow_its_model() -> None:
    """P(i) ∝ θ_i exp f_i: the loss is least at f itself, and the naive loss is not."""
    rng = np.random.default_rng(0)
    theta_V, taste_V = rng.uniform(0.05, 0.9, 5), rng.normal(size=5)
    chance_V = theta_V * np.exp(taste_V)
    np.testing.assert_allclose(slope(taste_V, chance_V, np.log(theta_V)), 0, atol=1e-9)
    assert np.abs(slope(taste_V, chance_V, np.zeros(5))).max() > 0.01


def test_nearer_to_the_tastes_than_naive_where_items_are_considered_at_random() -> None:
    """With random consideration sets the model is an approximation: on average over worlds it is the nearer one."""
    rng = np.random.default_rng(1)
    corrected, naive = [], []
    for _ in range(20):
        theta_V, taste_V = rng.uniform(0.05, 0.9, 5), rng.normal(size=5)
        chance_V, true_V = considered_then_chosen(theta_V, taste_V), taste_V - taste_V.mean()
        corrected.append(np.abs(minimiser(chance_V, np.log(theta_V)) - true_V).mean())
        naive.append(np.abs(minimiser(chance_V, np.zeros(5)) - true_V).mean())
    assert np.mean(corrected) < 0.6 * np.mean(naive)


@pytest.mark.parametrize("options", [{"clip": 0.0}, {"clip": 2.0}, {"strength": -1.0}])
def test_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        build("corrected", options, propensity=KnownTemporal(TOY.world))


def test_the_kind_of_propensity_is_checked() -> None:
    static = propensity("known-static", {}, TOY.train, world=TOY.world)
    with pytest.raises(UnveilError, match="needs a temporal propensity"):
        ExposureCorrected(static)


def test_each_slot_has_its_own_step() -> None:
    slots = Slots(torch.tensor([1, 1]), torch.tensor([2, 2]), torch.tensor([0, 5]))
    offset_MV = build("corrected", {}, propensity=KnownTemporal(TOY.world))(slots).offset_MV
    assert offset_MV is not None
    assert not torch.allclose(*offset_MV[:])
