"""A world beyond its last step: what was true there stays true. Shapes: T steps, K factors."""

from dataclasses import replace

import numpy as np

from unveil.propensity.factors import Factors
from unveil.simulation.world import World


def held(world: World, steps: int) -> World:
    """The same world with at least that many steps; those beyond T − 1 are like T − 1.

    A world says nothing about what comes after it. Of the ways to go on, standing still adds no taste of its own.
    """
    missing = max(0, steps - world.n_steps)
    return replace(
        world,
        relevance_logits=_longer(world.relevance_logits, missing),
        exposure_logits=_longer(world.exposure_logits, missing),
    )


def _longer(factors: Factors, steps: int) -> Factors:
    return replace(factors, W_TK=np.concatenate([factors.W_TK, np.repeat(factors.W_TK[-1:], steps, axis=0)]))
