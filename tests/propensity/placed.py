"""Logs and tables of the position-based click model. Shapes: V items, K positions, U users, N rows."""

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions
from unveil.propensity.positions import PositionCounts

Floats = NDArray[np.float64]


def table(shown_VK: NDArray[np.float64], clicked_VK: NDArray[np.float64]) -> PositionCounts:
    """Counts as placings; positions are counted from 1."""
    item_P, place_P = np.nonzero(shown_VK)
    shown_P, clicked_P = (each[item_P, place_P].astype(np.float64) for each in (shown_VK, clicked_VK))
    return PositionCounts(item_P, place_P, shown_P, clicked_P, np.arange(1, shown_VK.shape[1] + 1))


def confounded(r_V: Floats, positions: int, strength: float = 6.0) -> Floats:
    """P(position | item): what is liked is placed on top more often."""
    tilt_K = np.linspace(1, -1, positions)
    odds_VK = np.exp(strength * (r_V - r_V.mean())[:, None] * tilt_K)
    return np.asarray(odds_VK / odds_VK.sum(1, keepdims=True))


def drawn(
    e_K: Floats, r_V: Floats, rows: int, users: int, rng: np.random.Generator, *, strength: float = 6.0
) -> Interactions:
    """A log of impressions: an item by chance, a position by `confounded`, a click by e_k r_i; one a second."""
    item_N = rng.integers(0, len(r_V), rows)
    chance_VK = confounded(r_V, len(e_K), strength)
    place_N = (rng.random(rows)[:, None] > np.cumsum(chance_VK, 1)[item_N, :-1]).sum(1)
    clicked_N = rng.random(rows) < e_K[place_N] * r_V[item_N]
    return log_of(rng.integers(0, users, rows), item_N, place_N + 1, clicked_N, (users, len(r_V)))


def log_of(
    user_N: NDArray[np.int64],
    item_N: NDArray[np.int64],
    position_N: NDArray[np.int64],
    clicked_N: NDArray[np.bool_],
    size: tuple[int, int],
) -> Interactions:
    """Rows in the order of time."""
    users, items = (Vocabulary(f"{n:05}" for n in range(count)) for count in size)
    return Interactions(
        user_N.astype(np.int32),
        item_N.astype(np.int32),
        users,
        items,
        time=np.arange(len(user_N), dtype=np.int64) * 1_000_000,
        clicked=np.asarray(clicked_N, bool),
        position=position_N.astype(np.int32),
    )
