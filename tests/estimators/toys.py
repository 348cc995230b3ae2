"""A small world with factors drawn at random, and a log of it."""

from dataclasses import dataclass

import numpy as np

from unveil.data.batches import ClozeTask
from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.propensity.factors import Factors
from unveil.simulation.world import World


def random_factors(shape: tuple[int, int, int], seed: int, *, moving: bool = True) -> Factors:
    """Logits of every (user, item, step); the same at all steps unless `moving`."""
    rng = np.random.default_rng(seed)
    users, items, steps = shape
    W_TK = rng.normal(size=(steps, 4)) if moving else np.ones((steps, 4))
    return Factors.of(rng.normal(size=(users, 4)), rng.normal(size=(items, 4)), W_TK)


def random_world(users: int = 12, items: int = 7, steps: int = 9, *, seed: int = 0, moving: bool = True) -> World:
    """Exposure that changes with the step, or does not."""
    shape = (users, items, steps)
    return World(
        relevance_logits=random_factors(shape, seed),
        exposure_logits=random_factors(shape, seed + 1, moving=moving),
        users=Vocabulary(f"u{n:02}" for n in range(users)),
        items=Vocabulary(f"i{n:02}" for n in range(items)),
        start_U=np.zeros(users, np.int32),
        severity=1.0,
        origin={"kind": "random"},
    )


@dataclass(frozen=True)
class Toy:
    """A world, a rated log of it, the training part, and all its slots."""

    world: World
    log: Interactions
    train: Sequences
    slots: Slots

    @classmethod
    def drawn(cls, world: World, seed: int = 0, *, impressions: float | None = None) -> "Toy":
        log = world.log(np.random.default_rng(seed), ratings_noise=1.0, impressions=impressions)
        train = leave_one_out(Sequences.of(log)).train
        return cls(world, log, train, ClozeTask(train, 100, 4, 0.5).slots)
