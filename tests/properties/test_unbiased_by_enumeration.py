"""The paper's three propositions, by exact enumeration of everything that can happen in a tiny world.

All draws of exposure O, choice C and relevance R at all slots are enumerated; each gives a log, each log a risk by the
loss as it is trained. As in the paper's proofs, what the model says at a slot is held fixed, and the risk is divided
by the number of slots that could have given an event.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from tests.estimators.toys import random_world
from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal, cloze_risk
from unveil.estimators.inverse import IPS, ITPS
from unveil.estimators.naive import Ideal, Naive
from unveil.propensity.factors import Factors
from unveil.propensity.known import KnownStatic, KnownTemporal
from unveil.simulation.choice import CHOICES
from unveil.simulation.world import World

V, T, NOTHING = 3, 3, -1
ALL = Slots(torch.zeros(T, dtype=torch.int64), torch.zeros(T, dtype=torch.int64), torch.arange(T))


def naive(world: World) -> Estimator:
    return Naive()


def ips(world: World) -> Estimator:
    return IPS(KnownStatic(world))


def itps(world: World) -> Estimator:
    return ITPS(KnownTemporal(world))


def world_of_one(seed: int, *, moving: bool = True, severity: float = 1.0) -> World:
    return replace(random_world(users=1, items=V, steps=T, seed=seed, moving=moving), severity=severity)


def interaction_probabilities(world: World, step: int, choice: str) -> dict[int, float]:
    """P(the slot's event is item i), and of no event: the sum over all O in {0, 1}^V, all C, all R of C."""
    user_1, step_1 = np.array([0]), np.array([step])
    theta_V = world.exposure(user_1, step_1)[0].astype(np.float64)
    gamma_V = world.relevance(user_1, step_1)[0].astype(np.float64)
    logit_1V = world.relevance_logits.logits(user_1, step_1)
    probability: dict[int, float] = defaultdict(float)
    for exposed in product([False, True], repeat=V):
        p_exposed = np.prod(np.where(exposed, theta_V, 1 - theta_V))
        p_chosen_V = CHOICES[choice]().probability(logit_1V, np.array([exposed]))[0]
        probability[NOTHING] += p_exposed * (1 - p_chosen_V.sum())
        for item, relevant in product(range(V), [False, True]):
            p_relevant = gamma_V[item] if relevant else 1 - gamma_V[item]
            taken = item if exposed[item] and relevant else NOTHING
            probability[taken] += p_exposed * p_chosen_V[item] * p_relevant
    assert sum(probability.values()) == pytest.approx(1)
    return probability


class Model:
    """Fixed outputs at every step."""

    def __init__(self, seed: int) -> None:
        rng = torch.Generator().manual_seed(seed)
        self.h_TD = torch.randn(T, 2, generator=rng, dtype=torch.float64)
        self.table_VD = torch.randn(V, 2, generator=rng, dtype=torch.float64)
        self.bias_V = torch.randn(V, generator=rng, dtype=torch.float64)

    def risk(self, slots: Slots, signal: Signal) -> float:
        return float(cloze_risk(self.h_TD[slots.step_M], self.table_VD, self.bias_V, signal, normaliser=T))


def expected_risk(world: World, estimator: Estimator, choice: str, model: Model) -> float:
    """Σ over all logs of P(log) · risk of the log."""
    outcomes = [list(interaction_probabilities(world, step, choice).items()) for step in range(T)]
    total = 0.0
    for log in product(*outcomes):
        taken = [(item, step) for step, (item, _) in enumerate(log) if item != NOTHING]
        item_M, step_M = (torch.tensor([slot[k] for slot in taken], dtype=torch.int64) for k in (0, 1))
        slots = Slots(torch.zeros_like(item_M), item_M, step_M)
        total += float(np.prod([p for _, p in log])) * model.risk(slots, estimator(slots))
    return total


def bias(world: World, make: Callable[[World], Estimator], seed: int, choice: str = "rational_all") -> float:
    """E[L] − L_ideal, relative to L_ideal."""
    model = Model(seed)
    ideal = model.risk(ALL, Ideal(world)(ALL))
    return (expected_risk(world, make(world), choice, model) - ideal) / ideal


SEEDS = pytest.mark.parametrize("seed", range(5))


@SEEDS
def test_proposition_1_the_naive_loss_is_biased(seed: int) -> None:
    assert abs(bias(world_of_one(seed), naive, seed)) > 0.05


@SEEDS
def test_the_naive_loss_is_unbiased_where_everything_is_seen(seed: int) -> None:
    world = world_of_one(seed)
    seen = replace(world, exposure_logits=Factors.constant(1, V, T, value=60.0))
    assert abs(bias(seen, naive, seed)) < 1e-6


@SEEDS
def test_proposition_2_ips_is_unbiased_where_exposure_does_not_change_with_the_step(seed: int) -> None:
    assert abs(bias(world_of_one(seed, moving=False), ips, seed)) < 1e-6


@SEEDS
def test_proposition_2_and_biased_where_it_does(seed: int) -> None:
    assert abs(bias(world_of_one(seed), ips, seed)) > 1e-3


@SEEDS
@pytest.mark.parametrize("severity", [1.0, 3.0])
def test_proposition_3_itps_is_unbiased(seed: int, severity: float) -> None:
    assert abs(bias(world_of_one(seed, severity=severity), itps, seed)) < 1e-6


@SEEDS
def test_itps_is_unbiased_for_a_user_who_chooses_by_chance_too(seed: int) -> None:
    # C ~ Cat(γ): the ideal risk is Σ_i P(C = i) γ_i (−log p_i), itself an expectation over C.
    world, model = world_of_one(seed), Model(seed)
    step_T, user_T = np.arange(T), np.zeros(T, np.int64)
    gamma_TV = world.relevance(user_T, step_T).astype(np.float64)
    ideal = 0.0
    for item in range(V):
        weight_T = torch.from_numpy(gamma_TV[:, item] ** 2 / gamma_TV.sum(1))
        ideal += model.risk(ALL, Signal(torch.full((T,), item), weight_T))
    assert expected_risk(world, itps(world), "categorical_all", model) == pytest.approx(ideal, rel=1e-6)


@SEEDS
def test_a_clip_costs_the_unbiasedness(seed: int) -> None:
    assert bias(world_of_one(seed, severity=3.0), lambda w: ITPS(KnownTemporal(w), clip=0.9), seed) < -0.01


@SEEDS
@pytest.mark.parametrize("clip", [0.05, 0.3, 0.9])
def test_a_clip_biases_every_event_by_its_theta_over_the_clip_less_one(seed: int, clip: float) -> None:
    """E[L] is the ideal loss with each event multiplied by θ/max(θ, clip): the relative bias is that less 1."""
    world, model = world_of_one(seed, severity=3.0), Model(seed)
    ideal = Ideal(world)(ALL)
    theta_T = world.exposure_of(ALL.user_M.numpy(), ideal.target_M.numpy(), ALL.step_M.numpy()).astype(np.float64)
    bias_T = torch.from_numpy(theta_T / np.maximum(theta_T, clip) - 1)
    expected = model.risk(ALL, ideal) + model.risk(ALL, replace(ideal, weight_M=ideal.weight_M * bias_T))
    clipped = ITPS(KnownTemporal(world), clip=clip)
    assert expected_risk(world, clipped, "rational_all", model) == pytest.approx(expected, rel=1e-6)


@SEEDS
def test_itps_is_biased_for_a_user_who_chooses_among_the_exposed(seed: int) -> None:
    # The paper's own experiment: weighting by 1/θ leaves mass on every runner-up.
    assert abs(bias(world_of_one(seed), itps, seed, choice="rational_exposed")) > 0.01
