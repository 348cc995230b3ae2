"""Corrected softmaxes: what they shift, that they find the preferences behind choices; distillation from users."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.data.ragged import sequences_of
from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators import corrected
from unveil.estimators.base import Signal, build, cloze_risk, events
from unveil.estimators.corrected import CorrectedDistilled, ExposureCorrected, LogitAdjustment, UserFactors
from unveil.estimators.inverse import weight_diagnostics
from unveil.processes import threads
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


DISTILLED_TOY = Toy.drawn(random_world(users=30))
THETA = KnownTemporal(DISTILLED_TOY.world)


def taught(**options: object) -> CorrectedDistilled:
    made = build("corrected-distilled", {"batches": 20, **options}, propensity=THETA, train=DISTILLED_TOY.train)
    assert isinstance(made, CorrectedDistilled)
    return made


def logits(slots: Slots, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """h, table and bias of a network with anything in it."""
    rng = torch.Generator().manual_seed(seed)
    shapes = ((len(slots), 3), (DISTILLED_TOY.train.n_items, 3), (DISTILLED_TOY.train.n_items,))
    h_MD, table_VD, bias_V = (torch.randn(shape, generator=rng, requires_grad=True) for shape in shapes)
    return h_MD, table_VD, bias_V


def test_the_loss_and_its_gradient_by_hand() -> None:
    made, slots = taught(trust=0.4, strength=0.8), DISTILLED_TOY.slots.part(0, 7)
    h_MD, table_VD, bias_V = parts = logits(slots)
    z_MV = h_MD @ table_VD.T + bias_V
    liked_MV = torch.softmax(made.factors.p_UK[slots.user_M] @ made.factors.q_VK.T + made.factors.b_V, 1)
    offset_MV = 0.8 * THETA.of_all(slots).log()
    learnt = -(liked_MV * torch.log_softmax(z_MV, 1)).sum()
    taken = -torch.log_softmax(z_MV + offset_MV, 1)[torch.arange(7), slots.item_M].sum()
    expected, found = (0.4 * learnt + 0.6 * taken) / 7, cloze_risk(*parts, made(slots))
    torch.testing.assert_close(found, expected)
    for own, other in zip(*(torch.autograd.grad(loss, parts) for loss in (found, expected)), strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)


def test_without_trust_it_is_corrected() -> None:
    plain, slots = build("corrected", {}, propensity=THETA), DISTILLED_TOY.slots
    parts = logits(slots)
    torch.testing.assert_close(cloze_risk(*parts, taught(trust=0.0)(slots)), cloze_risk(*parts, plain(slots)))


def test_level_at_the_tastes_where_users_choose_as_assumed() -> None:
    """At f = F the expected slope is 0, over takes drawn by P ∝ θ e^F, at every slot by itself."""
    made, slots = taught(trust=0.3), DISTILLED_TOY.slots.part(0, 12)
    F_MV = made.factors(slots.user_M)
    chance_MV = torch.softmax(F_MV + THETA.of_all(slots).log(), 1)
    V = DISTILLED_TOY.train.n_items
    h_MD = F_MV.clone().requires_grad_()  # the table is the identity: h are the logits
    risk = sum(
        float(len(slots)) * cloze_risk(h_MD[m : m + 1], torch.eye(V), torch.zeros(V), made(one)) * chance_MV[m, item]
        for m in range(len(slots))
        for item in range(V)
        for one in [Slots(slots.user_M[m : m + 1], torch.tensor([item]), slots.step_M[m : m + 1])]
    )
    (slope_MD,) = torch.autograd.grad(torch.as_tensor(risk), h_MD)
    torch.testing.assert_close(slope_MD, torch.zeros_like(slope_MD), atol=1e-5, rtol=0)


def test_steady_tastes_are_found_where_users_choose_as_assumed() -> None:
    """Takes by P ∝ θ e^F with θ that hides what is liked, so that counts say little of it."""
    rng = np.random.default_rng(0)
    world = random_world(users=8, items=5, steps=400, seed=3, moving=False)
    theta_UTV = np.stack([world.exposure(np.full(400, user), np.arange(400)) for user in range(8)])
    F_UV = -1.5 * np.log(theta_UTV.mean(1))  # what is shown least is liked best
    chance_UTV = theta_UTV * np.exp(F_UV)[:, None]
    chance_UTV /= chance_UTV.sum(2, keepdims=True)
    item_UT = (chance_UTV.cumsum(2) < rng.random((8, 400, 1))).sum(2).clip(max=4)
    train = sequences_of(item_UT.tolist(), 5)
    options = {"width": 5, "penalty": 0.01, "batches": 600}
    made = build("corrected-distilled", options, propensity=KnownTemporal(world), train=train)
    assert isinstance(made, CorrectedDistilled)
    found_UV = torch.softmax(made.factors(torch.arange(8)), 1).numpy()
    true_UV = np.exp(F_UV) / np.exp(F_UV).sum(1, keepdims=True)
    assert np.abs(found_UV - true_UV).mean() < 0.03
    naive = build("naive", {})
    counted = UserFactors.of(train, naive, width=5, penalty=0.01, batches=600, seed=0)
    assert np.abs(torch.softmax(counted(torch.arange(8)), 1).numpy() - true_UV).mean() > 0.1


def test_tastes_are_those_of_least_penalised_loss() -> None:
    """Against a plain minimiser of the loss of its docstring over all events at once, with a penalty that matters."""
    made = taught(width=2, penalty=30.0, batches=3000)
    every, shapes = (
        events(DISTILLED_TOY.train),
        ((DISTILLED_TOY.train.n_users, 2), (DISTILLED_TOY.train.n_items, 2), (DISTILLED_TOY.train.n_items,)),
    )
    parts = [torch.randn(shape, generator=torch.Generator().manual_seed(7)).mul_(0.1) for shape in shapes]
    p_UK, q_VK, b_V = (part.requires_grad_() for part in parts)

    def loss() -> Tensor:
        z_NV = p_UK[every.user_M] @ q_VK.T + b_V + THETA.of_all(every).log()
        taken = -torch.log_softmax(z_NV, 1)[torch.arange(len(every)), every.item_M].sum()
        return (taken + 30 * (p_UK.square().sum() + q_VK.square().sum() + b_V.square().sum() / 10)) / len(every)

    def again() -> Tensor:
        least.zero_grad()
        torch.autograd.backward(value := loss())
        return value

    least = torch.optim.LBFGS([p_UK, q_VK, b_V], max_iter=500, tolerance_grad=1e-8, line_search_fn="strong_wolfe")
    step: Callable[..., object] = least.step
    step(again)
    user_U = torch.arange(DISTILLED_TOY.train.n_users)
    expected_UV = torch.log_softmax((p_UK @ q_VK.T + b_V).detach(), 1)
    torch.testing.assert_close(torch.log_softmax(made.factors(user_U), 1), expected_UV, atol=0.02, rtol=0)
    free = taught(width=2, penalty=0.3, batches=3000)
    assert made.factors.b_V.abs().max() < 0.8 * free.factors.b_V.abs().max(), "what is penalised is smaller"


def test_every_slot_is_told_the_tastes_of_its_own_user() -> None:
    made, slots = taught(trust=1.0), DISTILLED_TOY.slots
    for m in range(0, len(slots), 11):
        own_V = torch.softmax(made.factors(slots.user_M[m : m + 1]), 1)[0]
        torch.testing.assert_close(made.imputed(slots)[m], own_V)


def test_the_same_seed_learns_the_same() -> None:
    assert torch.equal(taught(seed=4).factors.p_UK, taught(seed=4).factors.p_UK)
    assert not torch.equal(taught(seed=4).factors.p_UK, taught(seed=5).factors.p_UK)


@pytest.mark.parametrize(("option", "value"), [("trust", 1.5), ("width", 0), ("batches", 0), ("penalty", -1.0)])
def test_options_out_of_range_are_refused(option: str, value: float) -> None:
    with pytest.raises(UnveilError, match=rf"corrected-distilled\.{option}: out of range"):
        taught(**{option: value})


@pytest.mark.parametrize(("many", "given"), [(4096, 1), (2, 3)])
def test_small_steps_are_not_shared_out(monkeypatch: pytest.MonkeyPatch, many: int, given: int) -> None:
    seen: list[int] = []
    monkeypatch.setattr(corrected, "_MANY", many)
    monkeypatch.setattr(corrected, "minimise", lambda *_, **__: seen.append(torch.get_num_threads()))
    with threads(3):
        taught()
    assert seen == [given]
