"""How unequally interactions fall on the items, and whether the most popular items stay the same.

Shapes: V items, L points of a curve, P periods, K items of a head.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import gini, head, lorenz

#: Points of the Lorenz curve, both ends included.
POINTS = 101


@dataclass(frozen=True)
class Concentration:
    """The Lorenz curve of popularity and what follows from it; items without interactions are not counted."""

    gini: float  # 0: all items alike; 1: one item has everything
    head: dict[str, float]  # share of the items, most popular first → share of the events
    half: int  # the fewest items that hold half of the events
    half_share: float  # of all items
    lorenz: tuple[float, ...]  # share of the events on the least popular 0%, 1%, … 100% of the items


def concentration(count_V: NDArray[Any]) -> Concentration:
    """Read everything off the counts."""
    falling_V = np.sort(count_V[count_V > 0])[::-1]
    half = int(np.searchsorted(np.cumsum(falling_V), falling_V.sum() / 2) + 1)
    return Concentration(
        gini=gini(falling_V),
        head={f"{share:.0%}": head(count_V, share) for share in (0.01, 0.1, 0.2)},
        half=half,
        half_share=half / len(falling_V),
        lorenz=tuple(lorenz(count_V, np.linspace(0, 1, POINTS)).tolist()),
    )


PERIODS = 10
#: Items of a head: so many, or a tenth of the catalogue where that is less.
HEAD = 100


@dataclass(frozen=True)
class Heads:
    """Share of the K most popular items of one period that are among the K of another, by periods apart."""

    size: int  # K
    shared: tuple[float, ...]  # one period apart, two apart, …: means over all such pairs of periods
    chance: tuple[float, ...]  # the same with the periods of all events shuffled

    @property
    def across(self) -> float:
        """Of the first and the last period."""
        return self.shared[-1]

    @property
    def across_by_chance(self) -> float:
        """What finite counts alone leave of it."""
        return self.chance[-1]


def heads(count_VP: NDArray[np.int64], dealt_VP: NDArray[np.int64]) -> Heads:
    """Compare all pairs of periods; `dealt_VP` are the counts with the periods of all events shuffled."""
    size = max(1, min(HEAD, len(count_VP) // 10))
    return Heads(size, _by_lag(count_VP, size), _by_lag(dealt_VP, size))


def counts(item_N: NDArray[Any], period_N: NDArray[Any], n_items: int, periods: int = PERIODS) -> NDArray[np.int64]:
    """count_VP: events of each item in each period."""
    cell_N = item_N.astype(np.int64) * periods + period_N
    return np.bincount(cell_N, minlength=n_items * periods).reshape(n_items, periods)


def _by_lag(count_VP: NDArray[np.int64], size: int) -> tuple[float, ...]:
    inside_VP = np.zeros(count_VP.shape)
    first_KP = np.argsort(-count_VP, axis=0, kind="stable")[:size]
    np.put_along_axis(inside_VP, first_KP, 1.0, axis=0)
    common_PP = inside_VP.T @ inside_VP / size
    return tuple(float(np.diagonal(common_PP, lag).mean()) for lag in range(1, len(common_PP)))
