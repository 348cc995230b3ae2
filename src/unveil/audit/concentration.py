"""How unequally what users took falls on the items. Shapes: V items, L points of a curve."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import gini

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
    """Read everything off the sorted counts; between two items the curve is a straight line."""
    rising_V = np.sort(count_V[count_V > 0])
    below_V1 = np.concatenate([[0.0], np.cumsum(rising_V) / rising_V.sum()])
    place_V1 = np.linspace(0, 1, len(below_V1))

    def least(share: float) -> float:
        return float(np.interp(share, place_V1, below_V1))

    half = int(np.searchsorted(np.cumsum(rising_V[::-1]), rising_V.sum() / 2) + 1)
    return Concentration(
        gini=gini(rising_V),
        head={f"{share:.0%}": 1 - least(1 - share) for share in (0.01, 0.1, 0.2)},
        half=half,
        half_share=half / len(rising_V),
        lorenz=tuple(least(share) for share in np.linspace(0, 1, POINTS).tolist()),
    )
