"""A log of impressions whose exposure is known: two kinds of users, two kinds of items, some items shown more."""

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions

DAY = 86_400_000_000
USERS, ITEMS, DAYS = 60, 24, 9


def exposure() -> NDArray[np.float64]:
    """θ_UV: users of one kind are mostly shown items of that kind, and early items more than late ones."""
    kind_U, kind_V = np.arange(USERS) % 2, np.arange(ITEMS) % 2
    weight_UV = np.where(kind_U[:, None] == kind_V, 6.0, 1.0) / (2 + np.arange(ITEMS))
    return np.asarray(weight_UV / weight_UV.sum(1, keepdims=True))


def impressions(each: int = 12, seed: int = 0) -> Interactions:
    """`each` impressions of every user on every day, drawn by `exposure`; a third of them taken."""
    rng = np.random.default_rng(seed)
    user_N = np.tile(np.repeat(np.arange(USERS), each), DAYS)
    day_N = np.repeat(np.arange(DAYS), USERS * each)
    edge_UV = np.cumsum(exposure(), axis=1)
    item_N = (rng.random(len(user_N))[:, None] > edge_UV[user_N]).sum(1)
    return Interactions(
        user_N.astype(np.int32),
        item_N.astype(np.int32),
        Vocabulary(f"u{n:02}" for n in range(USERS)),
        Vocabulary(f"i{n:02}" for n in range(ITEMS)),
        time=(19_000 + day_N) * DAY + rng.integers(0, DAY, len(user_N)),
        clicked=rng.random(len(user_N)) < 1 / 3,
    )
