"""The log of a world beside its truth. Shapes: N events, V items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import Description, describe
from unveil.data.interactions import Interactions
from unveil.evaluation.ground_truth import favourites_of
from unveil.simulation.generate import Progress
from unveil.simulation.world import World

SEVERITIES = (1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True, eq=False)
class Truth:
    """What only a world can tell about the log that was drawn from it."""

    world: World
    log: Interactions
    figures: Description
    favourite_V: NDArray[np.int64]  # at how many of the log's events each item was the user's favourite
    taken_V: NDArray[np.int64]  # how often each item was taken
    favourite_taken: float  # share of the events at which the user took their favourite
    lost: float  # mean over events of γ of the favourite − γ of what was taken
    favourite_exposure_N: NDArray[np.float32]  # θ of the favourite at each event

    @classmethod
    def of(cls, world: World, log: Interactions) -> "Truth":
        """Look up the favourite of every event's user at the event's own step."""
        assert log.step is not None
        best_N = favourites_of(world, log.user, log.step)
        gamma_best_N = world.relevance_of(log.user, best_N, log.step)
        gamma_taken_N = world.relevance_of(log.user, log.item, log.step)
        return cls(
            world=world,
            log=log,
            figures=describe(log),
            favourite_V=np.bincount(best_N, minlength=world.n_items),
            taken_V=np.bincount(log.item, minlength=world.n_items),
            favourite_taken=float((best_N == log.item).mean()),
            lost=float((gamma_best_N - gamma_taken_N).mean()),
            favourite_exposure_N=world.exposure_of(log.user, best_N, log.step),
        )

    @property
    def effective_share(self) -> float:
        """(Σ w)² / (N Σ w²) with w = 1/θ_sit: what share of the events is left when each is weighted by it."""
        assert self.log.propensity is not None
        weight_N = 1 / self.log.propensity
        return float(weight_N.sum() ** 2 / (weight_N**2).sum() / len(weight_N))


def drawn(world: World, seed: int, progress: Progress | None = None) -> Truth:
    """One draw of the world, with its truth."""
    return Truth.of(world, world.log(np.random.default_rng(seed), progress=progress))


def severities(world: World, seed: int) -> Sequence[Truth]:
    """The world with milder and harsher exposure, its own among them, drawn with the same random numbers."""
    return [drawn(world.with_severity(severity), seed) for severity in sorted({*SEVERITIES, world.severity})]
