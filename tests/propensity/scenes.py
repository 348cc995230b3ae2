"""Small worlds in which users take the best of what they see, and scores of what is estimated in them."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.propensity.base import PropensityModel
from unveil.propensity.build import build
from unveil.propensity.factors import Factors
from unveil.simulation.world import World

USERS, ITEMS, STEPS = 200, 12, 40


@dataclass(frozen=True)
class Scene:
    """A world, a log of it with ratings, and its histories."""

    world: World
    log: Interactions
    train: Sequences

    def model(self, name: str, **options: object) -> PropensityModel:
        return build(name, options, self.train, log=self.log)

    def theta(self, model: PropensityModel) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """log θ̂ and log θ of every (user, step, item) of some steps."""
        user, step = (index.ravel() for index in np.meshgrid(np.arange(USERS), np.arange(0, STEPS, 5), indexing="ij"))
        slots = Slots(*(torch.from_numpy(index.astype(np.int64)) for index in (user, np.zeros_like(user), step)))
        shape = (USERS, STEPS // 5, ITEMS)
        found = model.of_all(slots).double().log().numpy().reshape(shape)
        return found, np.log(self.world.exposure(user, step).astype(np.float64)).reshape(shape)


def scene(relevance: Factors, exposure: Factors, *, choice: str = "rational_exposed", noise: float = 0.3) -> Scene:
    world = World(
        relevance,
        exposure,
        Vocabulary(f"u{n:03}" for n in range(USERS)),
        Vocabulary(f"i{n:02}" for n in range(ITEMS)),
        np.zeros(USERS, np.int32),
        1.0,
        {"kind": "scene"},
    )
    log = world.log(np.random.default_rng(0), choice, relevance_draw=False, ratings_noise=noise)
    return Scene(world, log, Sequences.of(log))


def personal(rng: np.random.Generator, *, sd: float, factors: int = 2) -> Factors:
    """⟨P_s, Q_i⟩ of that standard deviation, at all steps alike."""
    scale = sd / np.sqrt(factors)
    P, Q = rng.normal(size=(USERS, factors)) * scale, rng.normal(size=(ITEMS, factors))
    return Factors.of(P, Q, np.ones((STEPS, factors)))


def fading(rng: np.random.Generator, *, sd: float) -> Factors:
    """Σ_k P_sk Q_ik W_tk of two factors: the first grows along the steps from nothing, the second fades to nothing."""
    still, grown_T = personal(rng, sd=sd), np.linspace(0, 1, STEPS)
    return Factors.of(still.P_UK, still.Q_VK, np.stack([grown_T, 1 - grown_T], 1))


def seasons(rng: np.random.Generator, *, sd: float) -> Factors:
    """A wave of its own for each item, alike for all users."""
    time, phase = 2 * np.pi * np.arange(STEPS) / STEPS, 2 * np.pi * rng.random(ITEMS)
    waves = np.stack([np.cos(time), np.sin(time)], 1)
    Q = sd * np.sqrt(2) * np.stack([np.cos(phase), np.sin(phase)], 1)
    return Factors.of(np.ones((USERS, 2)), Q, waves)


def alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])
