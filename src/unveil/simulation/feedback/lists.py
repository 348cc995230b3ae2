"""What a model recommends to everybody, from whole histories.

Shapes: U users, B users of a batch, K places, V items.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.data.slots import histories
from unveil.data.vocabulary import Index
from unveil.evaluation.metrics import NOBODY
from unveil.evaluation.protocols import seen_cells
from unveil.evaluation.ranking import Scorer, at_rest, checked_scores, top_items

#: Users, and scores, held at once: 16 MiB of scores.
ROWS, CELLS = 256, 2**22

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Lists:
    """K places for every user, best first; `NOBODY`, with a score of 0, where a user has nothing unseen left."""

    top_UK: Index
    score_UK: Floats

    @property
    def filled_UK(self) -> NDArray[np.bool_]:
        """Which places hold an item."""
        return np.asarray(self.top_UK != NOBODY)


def recommended(scorer: Scorer, sequences: Sequences, length: int, k: int) -> Lists:
    """The k best items for every user, nothing that is in the user's history. A list is shorter where too few are left.

    `length` is the number of tokens that the scorer is shown: the most recent of the history, then MASK.
    """
    top_UK = np.full((sequences.n_users, k), NOBODY, np.int32)
    score_UK = np.zeros((sequences.n_users, k), np.float32)
    with at_rest(scorer):
        for user_B in _batches(sequences, length):
            seen_B = sequences.length_U[user_B]
            scores_BV = checked_scores(scorer, histories(sequences, user_B, seen_B, length), sequences.n_items).cpu()
            row_N, item_N = (torch.from_numpy(part) for part in seen_cells(sequences, user_B, seen_B))
            top_BK = top_items(scores_BV, k, (row_N, item_N))
            top_UK[user_B] = top_BK.numpy()
            score_UK[user_B] = scores_BV.gather(1, top_BK.clamp_min(0)).masked_fill(top_BK == NOBODY, 0.0).numpy()
    return Lists(top_UK, score_UK)


def _batches(sequences: Sequences, length: int) -> Iterator[NDArray[np.int64]]:
    """Users with histories of similar length together: rows are as wide as the longest of a batch."""
    order_U = np.argsort(np.minimum(sequences.length_U, length), kind="stable")
    size = max(1, min(ROWS, CELLS // sequences.n_items))
    return (order_U[start : start + size] for start in range(0, len(order_U), size))
