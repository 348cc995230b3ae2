"""Ways from one item to the next, in histories laid end to end. Shapes: N events, U users, W different ways."""

import numpy as np
from numpy.typing import NDArray


class Walk:
    """Ways from one item to the next, of some users; `half_U` says whose successors are learnt to guess the others'."""

    def __init__(self, user_N: NDArray[np.int32], n_items: int, half_U: NDArray[np.bool_]) -> None:
        self.n_items = n_items
        self.follows_N = user_N[1:] == user_N[:-1]
        self._learnt_N = half_U[user_N[1:]]

    def ways(self, item_N: NDArray[np.int32], which_N: NDArray[np.bool_]) -> NDArray[np.int64]:
        """a · V + b of every event b that follows a."""
        return item_N[:-1][which_N].astype(np.int64) * self.n_items + item_N[1:][which_N]

    def recurring(self, item_N: NDArray[np.int32]) -> int:
        """R: pairs of equal ways."""
        count_W = np.unique(self.ways(item_N, self.follows_N), return_counts=True)[1]
        return int((count_W * (count_W - 1) // 2).sum())

    def guessed(self, item_N: NDArray[np.int32]) -> float:
        """How often b is the commonest successor of a among the learnt half, over the other half's ways."""
        way_W, count_W = np.unique(self.ways(item_N, self.follows_N & self._learnt_N), return_counts=True)
        from_W = way_W // self.n_items
        best = np.lexsort((way_W, -count_W, from_W))
        first = best[np.flatnonzero(np.diff(from_W[best], prepend=-1))]
        asked = self.ways(item_N, self.follows_N & ~self._learnt_N)
        return float(np.isin(asked, way_W[first]).mean()) if len(asked) else 0.0
