"""A ratings.csv shaped like ml-20m, generated: nothing to download, nothing that may not be shared."""

from pathlib import Path

import numpy as np
import polars as pl

USERS, ITEMS, EVENTS = 138_493, 26_744, 20_000_263
#: Items with five ratings or more: those that the paper trains on.
KEPT_ITEMS = 18_345


def write_ratings_csv(
    path: Path, *, events: int = EVENTS, users: int = USERS, items: int = ITEMS, seed: int = 0
) -> None:
    """Long-tailed items, log-normal history lengths (20 or more), users together, half-star ratings, times in s."""
    rng = np.random.default_rng(seed)
    popularity = np.arange(1, items + 1) ** -0.9
    spread = rng.lognormal(0, 1.1, users)
    extra = rng.multinomial(events - 20 * users, spread / spread.sum())
    pl.DataFrame(
        {
            "userId": np.repeat(np.arange(1, users + 1), 20 + extra),
            "movieId": rng.choice(items, size=events, p=popularity / popularity.sum()) + 1,
            "rating": rng.integers(1, 11, events) / 2,
            "timestamp": rng.integers(789_652_004, 1_427_784_002, events),
        }
    ).write_csv(path)
