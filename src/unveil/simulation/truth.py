"""Cases about the true favourite: what a user who sees every item would take. Shapes: N events, C cases.

Every item is every item of the world at hand. For targets, negatives, rankings and training over the observed
catalogue (all items that occur in a log, its held-out events included; the paper's), narrow both alike:
`log = log.compact(); world = world.aligned_with(log)`.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.data.splits import EvalCases
from unveil.propensity.factors import Indices
from unveil.simulation.world import World

#: Slots whose relevance of all items is held at once.
_BLOCK = 1024


def favourites_of(world: World, user_N: Indices, step_N: Indices) -> NDArray[np.int64]:
    """argmax_i γ_sit at each of these users and steps, block by block."""
    starts = range(0, len(user_N), _BLOCK)
    best = [world.ideal_target(user_N[at : at + _BLOCK], step_N[at : at + _BLOCK]) for at in starts]
    return np.concatenate([np.zeros(0, np.int64), *best])


def true_cases(world: World, cases: EvalCases) -> EvalCases:
    """The same questions with another answer: the item of highest γ at the case's own user and step.

    This is the paper's evaluation on true relevance: what a user who sees every item would take next.
    """
    best_C = favourites_of(world, cases.user_C, cases.step_C)
    return replace(cases, item_C=best_C.astype(cases.item_C.dtype))
