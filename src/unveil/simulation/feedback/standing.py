"""How good an item is among all that a user has not met, by the truth of a world.

Relevance itself may be near 1 for most items and say little; its order says more.
Shapes: U users, B users of a batch, K places, V items.
"""

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.data.vocabulary import Index
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.protocols import seen_cells
from unveil.simulation.world import World

#: Relevances held at once: 32 MiB.
CELLS = 2**22


def standing(world: World, item_UK: Index, sequences: Sequences) -> NDArray[np.float64]:
    """Σ_j [γ_j < γ_i] / (n − 1) over the n items j that a user has not met: 1 the best of them, ½ by chance.

    At the step after the last of `sequences`; NaN in empty places, 1 where i is the only item left.
    """
    size = max(1, CELLS // sequences.n_items)
    parts = [
        _standing(world, np.arange(start, min(start + size, len(item_UK))), item_UK, sequences)
        for start in range(0, len(item_UK), size)
    ]
    return np.concatenate(parts)


def _standing(world: World, user_B: NDArray[np.int64], item_UK: Index, sequences: Sequences) -> NDArray[np.float64]:
    gamma_BV = world.relevance_logits.logits(user_B, np.full(len(user_B), sequences.n_steps))
    item_BK = item_UK[user_B]
    own_BK = np.take_along_axis(gamma_BV, np.maximum(item_BK, 0), axis=1)
    row_N, met_N = seen_cells(sequences, user_B, sequences.length_U[user_B])
    gamma_BV[row_N, met_N] = np.inf
    left_B = np.isfinite(gamma_BV).sum(1)
    below_BK = np.stack([(gamma_BV < own_B[:, None]).sum(1) for own_B in own_BK.T], axis=1)
    share_BK = np.where(left_B[:, None] > 1, below_BK / np.maximum(left_B - 1, 1)[:, None], 1.0)
    return np.where(item_BK == NOBODY, np.nan, share_BK)
