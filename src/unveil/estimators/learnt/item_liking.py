"""How well an item is liked by those who took it, whoever they are.

Shapes: N training events, P pairs of a user and an item that was taken, U users, V items.
"""

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences

Values = NDArray[np.float64]

#: Rounds of alternation; the weight of the mean behind each user and item; and the most that all ratings of one user
#: and item weigh, as they tell of one taste. One of them weighs 3/4, so that the mean stands for four raters.
_ROUNDS, _BACKING, _MOST = 8, 3.0, 3.0


def item_liking(train: Sequences, rating_N: Values) -> Values:
    """b_V of rating ≈ mean + a_s + b_i, shrunk, in standard deviations of the ratings; 0 where nobody took the item."""
    V = train.n_items
    key_P, nth_N, count_P = np.unique(
        train.user_N.astype(np.int64) * V + train.item_N, return_inverse=True, return_counts=True
    )
    z_N = (rating_N - rating_N.mean()) / max(float(rating_N.std()), 1e-9)
    z_P, weight_P = np.bincount(nth_N, z_N) / count_P, count_P / (1 + count_P / _MOST)
    user_P, item_P = key_P // V, key_P % V
    a_U, b_V = np.zeros(train.n_users), np.zeros(V)
    for _ in range(_ROUNDS):
        a_U = _shrunk(user_P, z_P - b_V[item_P], weight_P, train.n_users)
        b_V = _shrunk(item_P, z_P - a_U[user_P], weight_P, V)
    return b_V


def _shrunk(index_P: NDArray[np.int64], value_P: Values, weight_P: Values, size: int) -> Values:
    """Σ w x / (Σ w + backing) of each index."""
    total = np.bincount(index_P, weight_P * value_P, size)
    return np.asarray(total / (np.bincount(index_P, weight_P, size) + _BACKING))
