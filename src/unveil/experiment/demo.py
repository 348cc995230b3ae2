"""The demo: draw the built-in world, look at its log beside its truth, write the page.

Shapes: N events, V items, B users of one block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import Description, describe
from unveil.data.interactions import Interactions
from unveil.files import atomic_folder
from unveil.simulation.generate import Progress
from unveil.simulation.world import World

SEVERITIES = (1.0, 2.0, 3.0, 4.0)
_BLOCK = 1024


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


def favourites_of(world: World, user_N: NDArray[np.int32], step_N: NDArray[np.int32]) -> NDArray[np.int64]:
    """argmax_i γ_sit of each event, block by block."""
    starts = range(0, len(user_N), _BLOCK)
    blocks = [world.ideal_target(user_N[at : at + _BLOCK], step_N[at : at + _BLOCK]) for at in starts]
    return np.concatenate(blocks)


def run_demo(output: Path, *, seed: int = 0, overwrite: bool = False, progress: Progress | None = None) -> Truth:
    """Write `output`: index.html, log.csv and the world itself. The same seed gives the same files."""
    from unveil.data.sinks import write
    from unveil.experiment.demo_page import demo_page
    from unveil.experiment.report import write_page

    with atomic_folder(output, overwrite=overwrite) as draft:
        world = World.builtin(seed=seed)
        truth = drawn(world, seed, progress)
        write(truth.log, draft / "log.csv")
        world.save(draft / "world")
        write_page(demo_page(truth, severities(world, seed), seed), draft / "index.html")
    return truth


def drawn(world: World, seed: int, progress: Progress | None = None) -> Truth:
    """One draw of the world, with its truth."""
    return Truth.of(world, world.log(np.random.default_rng(seed), progress=progress))


def severities(world: World, seed: int) -> Sequence[Truth]:
    """The same world with milder and harsher exposure, drawn with the same random numbers."""
    return [drawn(world.with_severity(severity), seed) for severity in SEVERITIES]
