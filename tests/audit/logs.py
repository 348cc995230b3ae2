"""Generated logs with the columns that real ones have: times, ties, repeats, impressions."""

import numpy as np

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions


def generated(
    *, users: int = 150, items: int = 60, mean: int = 14, seed: int = 0, impressions: bool = False, clock: bool = True
) -> Interactions:
    """Long-tailed items whose popularity turns over the calendar; days as times, so that many events are tied."""
    rng = np.random.default_rng(seed)
    length = rng.poisson(mean, users) + 3
    user = np.repeat(np.arange(users), length)
    day = np.sort(rng.integers(0, 100, len(user)))
    rng.shuffle(user)
    weight_VD = (1 + np.arange(items))[:, None] ** -0.8 * (
        1.2 + np.sin(np.arange(items)[:, None] + np.arange(100) / 20)
    )
    edge_VD = np.cumsum(weight_VD / weight_VD.sum(0), axis=0)
    item = np.array([int(np.searchsorted(edge_VD[:, d], u)) for d, u in zip(day, rng.random(len(day)), strict=True)])
    return Interactions(
        user.astype(np.int32),
        item.astype(np.int32),
        Vocabulary(f"{n:04d}" for n in range(users)),
        Vocabulary(f"{n:04d}" for n in range(items)),
        time=(18_000 + day.astype(np.int64)) * 86_400_000_000 if clock else None,
        clicked=rng.random(len(user)) < 0.6 if impressions else None,
        position=rng.integers(1, 5, len(user)).astype(np.int32) if impressions else None,
    ).compact()
