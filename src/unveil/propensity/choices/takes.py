"""Takes: what was taken by whom in which block of steps, how often, and how it was rated.

Shapes: N takes (each user, item and block once), E events.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.data.ratings import every_rating
from unveil.data.sequences import Sequences
from unveil.propensity.choices.blocks import Blocks, Index

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Takes:
    """`count_N` times user s took item i in block b, rated `rating_N` on average, with `scatter_N` = Σ (r − mean)²."""

    user_N: Index
    item_N: Index
    block_N: Index
    count_N: Values
    shape: tuple[int, int, int]  # users, items, blocks
    rating_N: Values | None = None
    scatter_N: Values | None = None

    @classmethod
    def of(cls, train: Sequences, blocks: Blocks, rating_E: Values | None = None) -> "Takes":
        """Of the events of the training part and, where there are, their ratings."""
        shape = (train.n_users, train.n_items, blocks.count)
        user_E, item_E, block_E = train.user_N.astype(np.int64), train.item_N.astype(np.int64), blocks.at(train.step_N)
        key_E = (user_E * shape[1] + item_E) * shape[2] + block_E
        _, first_N, nth_E, count_N = np.unique(key_E, return_index=True, return_inverse=True, return_counts=True)
        user_N, item_N, block_N = (side[first_N] for side in (user_E, item_E, block_E))
        taken = cls(user_N, item_N, block_N, count_N.astype(np.float64), shape)
        if rating_E is None:
            return taken
        mean_N = np.bincount(nth_E, rating_E) / count_N
        scatter_N = np.bincount(nth_E, (rating_E - mean_N[nth_E]) ** 2).astype(np.float64)
        return replace(taken, rating_N=mean_N, scatter_N=scatter_N)

    def __len__(self) -> int:
        return len(self.user_N)


def ratings_of(log: Interactions, train: Sequences, who: str) -> Values:
    """The rating of every training event; empty ones are refused."""
    return every_rating(log, train, f"the propensity {who!r}", "timing or joint-temporal, which need none")
