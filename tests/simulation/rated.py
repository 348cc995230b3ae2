"""Logs with ratings that were made of tastes. Shapes: U users, V items, N events."""

import numpy as np

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions


def rated(users: int = 60, items: int = 40, longest: int = 20, seed: int = 0) -> Interactions:
    """Histories of unequal length over distinct items; ratings 3.5 + ⟨taste, item⟩ + noise, from 1 to 5.

    Users meet popular items more often, and items that lie their own way, which has nothing to do with their taste.
    """
    rng = np.random.default_rng(seed)
    taste_UK, place_VK = rng.standard_normal((users, 2)), rng.standard_normal((items, 2))
    way_UK, lies_VK = rng.standard_normal((users, 2)), rng.standard_normal((items, 2))
    met_UV = (1 + np.arange(items)) ** -0.7 * np.exp(way_UK @ lies_VK.T)
    events = []
    for user in range(users):
        length = longest if user == 0 else int(rng.integers(longest // 2, longest + 1))
        taken = rng.choice(items, length, replace=False, p=met_UV[user] / met_UV[user].sum())
        liked = 3.5 + place_VK[taken] @ taste_UK[user] + 0.3 * rng.standard_normal(length)
        events += [(user, item, time, value) for time, (item, value) in enumerate(zip(taken, liked, strict=True))]
    user_N, item_N, time_N, rating_N = map(np.array, zip(*events, strict=True))
    return Interactions(
        user=user_N.astype(np.int32),
        item=item_N.astype(np.int32),
        users=Vocabulary(f"u{user:03d}" for user in range(users)),
        items=Vocabulary(f"i{item:03d}" for item in range(items)),
        time=time_N.astype(np.int64) * 1_000_000,
        rating=np.clip(rating_N, 1, 5).astype(np.float32),
    )
