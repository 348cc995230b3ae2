"""Worlds small enough to enumerate, and the exact probability of each event in them.

Shapes: S slots of the world, M events, G logs, U users, V items, T steps; V1 is V + 1, the last place for no event.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.slots import Slots
from unveil.propensity.factors import Factors
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.choice import CHOICES, NOTHING
from unveil.simulation.generate import draw
from unveil.simulation.world import World

Table = NDArray[np.float64]
#: R ~ Ber(γ) independent of O (the paper's); always 1; or both from one random number, and so dependent.
Relevance = Literal["drawn", "certain", "shared draw"]


def tiny_worlds(severity: float = 1.0, seed: int = 0) -> dict[str, World]:
    """Two users, three items and two steps, in worlds that differ in one thing each; relevance never changes."""
    size: dict[str, Any] = {"users": 2, "items": 3, "steps": 2, "tastes": 2, "severity": severity}
    spec = WorldSpec(**size, drift=0.0, stay=1.0, activity=0.0)
    moving, still = World.builtin(spec, seed), World.builtin(replace(spec, season=0.0), seed)
    unchosen_V = ~np.isin(np.arange(still.n_items), still.ideal_target(*still.slots()))
    swing_T = np.linspace(-2.0, 2.0, still.n_steps)
    swing = Factors.of(np.ones((still.n_users, 1)), unchosen_V[:, None], swing_T[:, None])
    return {
        "moving": moving,  # θ changes with the step
        "still": still,  # θ_sit = θ_si
        "related": moving.with_foresight(2.0),  # θ and γ are correlated, yet O and R are drawn independently
        "all_shown": replace(moving, exposure_logits=Factors.constant(*moving.exposure_logits.shape, 60.0)),  # θ = 1
        # θ changes with the step, but only for items that are nobody's favourite.
        "moving_unchosen": replace(still, exposure_logits=still.exposure_logits.plus(swing)),
    }


class DenseWorld:
    """Tables in double precision that larger worlds never hold whole; the rows are the slots in the world's order."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.user_S, self.step_S = (column.astype(np.int64) for column in world.slots())
        self.theta_SV: Table = world.exposure(self.user_S, self.step_S).astype(np.float64)
        self.gamma_SV: Table = world.relevance(self.user_S, self.step_S).astype(np.float64)
        #: Logits of γ, by which items are ordered: where γ rounds to 1 they still differ.
        self.logit_SV = world.relevance_logits.logits(self.user_S, self.step_S)
        self.favourite_S = world.ideal_target(self.user_S, self.step_S)
        self._row_UT = np.full((world.n_users, world.n_steps), -1)
        self._row_UT[self.user_S, self.step_S] = np.arange(len(self))

    def __len__(self) -> int:
        return len(self.user_S)

    def rows(self, slots: Slots) -> Tensor:
        return torch.from_numpy(self._row_UT[slots.user_M.numpy(), slots.step_M.numpy()])

    def slots(self, item_S: NDArray[Any]) -> Slots:
        """The slots with an event, and its item; `NOTHING` marks the others."""
        event_M = np.flatnonzero(item_S != NOTHING)
        return slots_of(self.user_S[event_M], item_S[event_M], self.step_S[event_M])

    def all_with(self, item: int) -> Slots:
        return self.slots(np.full(len(self), item))


def slots_of(user_M: NDArray[Any], item_M: NDArray[Any], step_M: NDArray[Any]) -> Slots:
    """Slots from columns of any whole numbers."""
    return Slots(*(torch.from_numpy(column.astype(np.int64)) for column in (user_M, item_M, step_M)))


def draw_slots(world: World, choice: str, seed: int, nth: int) -> Slots:
    """The events of the nth drawn log."""
    events = draw(world, np.random.default_rng([seed, nth]), CHOICES[choice]())
    return slots_of(events.user_N, events.item_N, events.step_N)


def event_probability(dense: DenseWorld, choice: str, relevance: Relevance = "drawn") -> Table:
    """P_SV1: P(the slot's event is item i), and that of no event: the sum over all O in {0, 1}^V, all C, and R of C."""
    n_slots, n_items = dense.theta_SV.shape
    p_SV1 = np.zeros((n_slots, n_items + 1))
    for shown in product((False, True), repeat=n_items):
        shown_SV = np.broadcast_to(shown, (n_slots, n_items))
        p_shown_S = np.where(shown_SV, dense.theta_SV, 1 - dense.theta_SV).prod(1)
        p_chosen_SV = CHOICES[choice]().probability(dense.logit_SV, shown_SV)
        p_liked_SV = relevance_probability(dense, shown_SV, relevance)
        p_SV1[:, NOTHING] += p_shown_S * (1 - p_chosen_SV.sum(1))
        for item, liked in product(range(n_items), (False, True)):
            p_R_S = p_liked_SV[:, item] if liked else 1 - p_liked_SV[:, item]
            event = item if shown[item] and liked else NOTHING
            p_SV1[:, event] += p_shown_S * p_chosen_SV[:, item] * p_R_S
    return p_SV1


def relevance_probability(dense: DenseWorld, shown_SV: NDArray[np.bool_], relevance: Relevance) -> Table:
    """P(R_i = 1 | O). Where one uniform u decides both, O = [u < θ] and R = [u < γ], P(u < γ) given O."""
    theta_SV, gamma_SV = dense.theta_SV, dense.gamma_SV
    if relevance != "shared draw":
        return np.ones_like(gamma_SV) if relevance == "certain" else gamma_SV
    if_shown_SV = np.minimum(theta_SV, gamma_SV) / theta_SV
    if_not_SV = np.maximum(gamma_SV - theta_SV, 0) / np.maximum(1 - theta_SV, np.finfo(float).tiny)
    return np.where(shown_SV, if_shown_SV, if_not_SV)


def ideal_weight(dense: DenseWorld, choice: str, relevance: Relevance = "drawn") -> Table:
    """W_SV: what item i counts in L_ideal on average, P(C_i = 1 | all items are seen) · E[R_i].

    For a rational user γ of the favourite and 0 elsewhere, the paper's L_ideal with its C fixed; for one who chooses by
    chance its mean over C. Where R = 1 there is no γ to weigh by, and each choice counts 1.
    """
    chosen_SV = CHOICES[choice]().probability(dense.logit_SV, np.ones(dense.logit_SV.shape, bool))
    return chosen_SV if relevance == "certain" else chosen_SV * dense.gamma_SV


def all_logs(n_slots: int, n_items: int) -> NDArray[np.int64]:
    """item_GS: each slot gives one of the items or nothing, so there are (V + 1)^S logs."""
    return np.indices((n_items + 1,) * n_slots).reshape(n_slots, -1).T + NOTHING


def log_probability(item_GS: NDArray[Any], p_SV1: Table) -> NDArray[np.float64]:
    """P_G = Π_s P(what slot s gave): slots are independent. `NOTHING` reads the last place of a row."""
    return np.asarray(p_SV1[np.arange(len(p_SV1)), item_GS].prod(1))


def rational_all(dense: DenseWorld) -> Table:
    """θ_i of the favourite: a choice that ignores exposure."""
    chosen_SV = np.arange(dense.theta_SV.shape[1]) == dense.favourite_S[:, None]
    return np.where(chosen_SV, dense.theta_SV, 0.0)


def rational_exposed(dense: DenseWorld) -> Table:
    """θ_i · Π_{j better than i} (1 − θ_j): seen, and nothing better seen."""
    order_SV = np.argsort(-dense.logit_SV, axis=1, kind="stable")
    theta_SV = np.take_along_axis(dense.theta_SV, order_SV, 1)
    unseen_SV = np.cumprod(np.hstack([np.ones((len(dense), 1)), 1 - theta_SV[:, :-1]]), axis=1)
    chosen_SV = np.empty_like(theta_SV)
    np.put_along_axis(chosen_SV, order_SV, theta_SV * unseen_SV, 1)
    return chosen_SV


def categorical_all(dense: DenseWorld) -> Table:
    """θ_i · γ_i / Σ_j γ_j."""
    return np.asarray(dense.theta_SV * dense.gamma_SV / dense.gamma_SV.sum(1, keepdims=True))


def categorical_exposed(dense: DenseWorld) -> Table:
    """E[O_i γ_i / Σ_j O_j γ_j] = θ_i ∫ γ_i e^(−γ_i u) Π_{j ≠ i} (1 − θ_j + θ_j e^(−γ_j u)) du over u ≥ 0.

    A race: item j, if exposed, arrives after an exponential time of rate γ_j, and the first to arrive is chosen. With
    u = exp v the integrand is smooth and vanishes at both ends, where sums over an even grid are as good as exact.
    """
    theta_SV, gamma_SV = dense.theta_SV, dense.gamma_SV
    total_SV = np.zeros_like(theta_SV)
    width, last = 0.4, np.log(40.0 / max(gamma_SV.min(), np.finfo(np.float32).tiny))  # γ · exp v is 40 at the end
    for u in np.exp(np.arange(-20.0, last, width)):
        late_SV = np.exp(-gamma_SV * u)
        absent_SV = np.maximum(1 - theta_SV + theta_SV * late_SV, np.finfo(float).tiny)
        nobody_S1 = absent_SV.prod(1, keepdims=True)
        total_SV += width * u * gamma_SV * late_SV * nobody_S1 / absent_SV
    return theta_SV * total_SV


CLOSED_FORMS: Mapping[str, Callable[[DenseWorld], Table]] = {
    form.__name__: form for form in (rational_all, rational_exposed, categorical_all, categorical_exposed)
}


def closed_form(dense: DenseWorld, choice: str, relevance: Relevance = "drawn") -> Table | None:
    """P(the slot's event is item i) by formula: exposed and chosen, times P(R_i = 1 | O_i = 1)."""
    if choice not in CLOSED_FORMS:
        return None
    return CLOSED_FORMS[choice](dense) * relevance_probability(dense, np.ones(dense.theta_SV.shape, bool), relevance)
