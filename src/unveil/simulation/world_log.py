"""A log drawn from a world beside what it hides. Shapes: N events, V items, U users, T steps, B events of a block."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import Description, describe
from unveil.data.interactions import Interactions
from unveil.simulation.world import World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEVERITIES = (1.0, 2.0, 3.0, 4.0)
_SEASONAL_ITEMS = 5
_BLOCK = 1024  # events


@dataclass(frozen=True, eq=False)
class WorldLog:
    """A log drawn from a world; an event's most relevant item is that of highest γ for its user at its step."""

    world: World
    log: Interactions
    figures: Description
    relevant_V: Ints  # at how many events each item was the most relevant one
    chosen_V: Ints  # how many events each item has
    hits: float  # share of the events whose item is the most relevant one
    lost: float  # mean over events of γ of the most relevant item − γ of the chosen one
    relevant_theta_N: NDArray[np.float32]  # θ of the most relevant item of each event

    @classmethod
    def draw(cls, world: World, seed: int) -> "WorldLog":
        log = world.log(np.random.default_rng(seed))
        assert log.step is not None
        blocks = [slice(start, start + _BLOCK) for start in range(0, len(log), _BLOCK)]
        best_N = np.concatenate([world.ideal_target(log.user[part], log.step[part]) for part in blocks])
        gamma_best_N, gamma_N = (world.relevance_of(log.user, item_N, log.step) for item_N in (best_N, log.item))
        return cls(
            world=world,
            log=log,
            figures=describe(log),
            relevant_V=np.bincount(best_N, minlength=world.n_items),
            chosen_V=np.bincount(log.item, minlength=world.n_items),
            hits=float((best_N == log.item).mean()),
            lost=float((gamma_best_N - gamma_N).mean()),
            relevant_theta_N=world.exposure_of(log.user, best_N, log.step),
        )

    @property
    def theta_N(self) -> Floats:
        assert self.log.propensity is not None
        return self.log.propensity

    @property
    def effective_share(self) -> float:
        """(Σ w)² / (N Σ w²) with w = 1/θ: the share of the events that weighting leaves."""
        weight_N = 1 / self.theta_N
        return float(weight_N.sum() ** 2 / (weight_N**2).sum() / len(weight_N))

    @cached_property
    def item_means(self) -> tuple[Floats, Floats]:
        """Mean γ and mean θ of each item, over the user and the step of every event."""
        world, log = self.world, self.log
        assert log.step is not None
        gamma_V, theta_V = np.zeros(world.n_items), np.zeros(world.n_items)
        for start in range(0, len(log), _BLOCK):
            user_B, step_B = log.user[start : start + _BLOCK], log.step[start : start + _BLOCK]
            gamma_V += world.relevance(user_B, step_B).sum(0, dtype=np.float64)
            theta_V += world.exposure(user_B, step_B).sum(0, dtype=np.float64)
        return gamma_V / len(log), theta_V / len(log)

    @cached_property
    def seasons(self) -> dict[str, Floats]:
        """Mean θ over all users along the steps, of the items of highest mean exposure."""
        world, user_U = self.world, np.arange(self.world.n_users)

        def mean(item: int, step: int) -> float:
            return float(world.exposure_of(user_U, np.full_like(user_U, item), np.full_like(user_U, step)).mean())

        most = np.argsort(-self.item_means[1], kind="stable")[:_SEASONAL_ITEMS]
        return {world.items[int(v)]: np.array([mean(v, t) for t in range(world.n_steps)]) for v in most}


def at_severities(world: World, seed: int) -> list[WorldLog]:
    """Logs of the world with milder and more severe exposure, its own among them, from the same random numbers."""
    return [WorldLog.draw(world.with_severity(p), seed) for p in sorted({*SEVERITIES, world.severity})]
