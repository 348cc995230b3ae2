"""Corrected, taught by each user's steady tastes: the loss by hand, level at the truth, and tastes that are found."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.data.ragged import sequences_of
from tests.estimators.toys import Toy, random_world
from unveil.cores import threads
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import cloze_risk
from unveil.estimators.build import build
from unveil.estimators.corrected_taught import CorrectedTaught
from unveil.estimators.learning import events
from unveil.estimators.learnt import steady_tastes
from unveil.estimators.learnt.steady_tastes import SteadyTastes
from unveil.propensity.known import KnownTemporal

TOY = Toy.drawn(random_world(users=30))
THETA = KnownTemporal(TOY.world)


def taught(**options: object) -> CorrectedTaught:
    made = build("corrected-taught", {"batches": 20, **options}, propensity=THETA, train=TOY.train)
    assert isinstance(made, CorrectedTaught)
    return made


def logits(slots: Slots, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """h, table and bias of a network with anything in it."""
    rng = torch.Generator().manual_seed(seed)
    shapes = ((len(slots), 3), (TOY.train.n_items, 3), (TOY.train.n_items,))
    h_MD, table_VD, bias_V = (torch.randn(shape, generator=rng, requires_grad=True) for shape in shapes)
    return h_MD, table_VD, bias_V


def test_the_loss_and_its_gradient_by_hand() -> None:
    made, slots = taught(trust=0.4, strength=0.8), TOY.slots.part(0, 7)
    h_MD, table_VD, bias_V = parts = logits(slots)
    z_MV = h_MD @ table_VD.T + bias_V
    liked_MV = torch.softmax(made.tastes.p_UK[slots.user_M] @ made.tastes.q_VK.T + made.tastes.b_V, 1)
    offset_MV = 0.8 * THETA.of_all(slots).log()
    learnt = -(liked_MV * torch.log_softmax(z_MV, 1)).sum()
    taken = -torch.log_softmax(z_MV + offset_MV, 1)[torch.arange(7), slots.item_M].sum()
    expected, found = (0.4 * learnt + 0.6 * taken) / 7, cloze_risk(*parts, made(slots))
    torch.testing.assert_close(found, expected)
    for own, other in zip(*(torch.autograd.grad(loss, parts) for loss in (found, expected)), strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)


def test_without_trust_it_is_corrected() -> None:
    plain, slots = build("corrected", {}, propensity=THETA), TOY.slots
    parts = logits(slots)
    torch.testing.assert_close(cloze_risk(*parts, taught(trust=0.0)(slots)), cloze_risk(*parts, plain(slots)))


def test_level_at_the_tastes_where_users_choose_as_assumed() -> None:
    """At f = F the expected slope is 0, over takes drawn by P ∝ θ e^F, at every slot by itself."""
    made, slots = taught(trust=0.3), TOY.slots.part(0, 12)
    F_MV = made.tastes(slots.user_M)
    chance_MV = torch.softmax(F_MV + THETA.of_all(slots).log(), 1)
    V = TOY.train.n_items
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
    made = build("corrected-taught", options, propensity=KnownTemporal(world), train=train)
    assert isinstance(made, CorrectedTaught)
    found_UV = torch.softmax(made.tastes(torch.arange(8)), 1).numpy()
    true_UV = np.exp(F_UV) / np.exp(F_UV).sum(1, keepdims=True)
    assert np.abs(found_UV - true_UV).mean() < 0.03
    naive = build("naive", {})
    counted = SteadyTastes.of(train, naive, width=5, penalty=0.01, batches=600, seed=0)
    assert np.abs(torch.softmax(counted(torch.arange(8)), 1).numpy() - true_UV).mean() > 0.1


def test_tastes_are_those_of_least_penalised_loss() -> None:
    """Against a plain minimiser of the loss of its docstring over all events at once, with a penalty that matters."""
    made = taught(width=2, penalty=30.0, batches=3000)
    every, shapes = events(TOY.train), ((TOY.train.n_users, 2), (TOY.train.n_items, 2), (TOY.train.n_items,))
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
    user_U = torch.arange(TOY.train.n_users)
    expected_UV = torch.log_softmax((p_UK @ q_VK.T + b_V).detach(), 1)
    torch.testing.assert_close(torch.log_softmax(made.tastes(user_U), 1), expected_UV, atol=0.02, rtol=0)
    free = taught(width=2, penalty=0.3, batches=3000)
    assert made.tastes.b_V.abs().max() < 0.8 * free.tastes.b_V.abs().max(), "what is penalised is smaller"


def test_every_slot_is_told_the_tastes_of_its_own_user() -> None:
    made, slots = taught(trust=1.0), TOY.slots
    for m in range(0, len(slots), 11):
        own_V = torch.softmax(made.tastes(slots.user_M[m : m + 1]), 1)[0]
        torch.testing.assert_close(made.imputed(slots)[m], own_V)


def test_the_same_seed_learns_the_same() -> None:
    assert torch.equal(taught(seed=4).tastes.p_UK, taught(seed=4).tastes.p_UK)
    assert not torch.equal(taught(seed=4).tastes.p_UK, taught(seed=5).tastes.p_UK)


@pytest.mark.parametrize(("option", "value"), [("trust", 1.5), ("width", 0), ("batches", 0), ("penalty", -1.0)])
def test_options_out_of_range_are_refused(option: str, value: float) -> None:
    with pytest.raises(UnveilError, match=rf"corrected-taught\.{option}: out of range"):
        taught(**{option: value})


@pytest.mark.parametrize(("many", "given"), [(4096, 1), (2, 3)])
def test_small_steps_are_not_shared_out(monkeypatch: pytest.MonkeyPatch, many: int, given: int) -> None:
    seen: list[int] = []
    monkeypatch.setattr(steady_tastes, "_MANY", many)
    monkeypatch.setattr(steady_tastes, "descend", lambda *_, **__: seen.append(torch.get_num_threads()))
    with threads(3):
        taught()
    assert seen == [given]
