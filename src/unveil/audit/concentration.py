"""How unequally what users took falls on the items. Shapes: V items, L points of a curve."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import gini, head, lorenz

#: Points of the Lorenz curve, both ends included.
POINTS = 101


@dataclass(frozen=True)
class Concentration:
    """The Lorenz curve of popularity and what is read off it; items that nobody took are not counted."""

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
