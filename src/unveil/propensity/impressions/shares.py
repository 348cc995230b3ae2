"""The share of all impressions that an item has: over a whole period, and lately, always looking back.

Shapes: D days, V items.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Shares = NDArray[np.float64]

#: Added to every count: an item that was never shown has a share all the same.
ADD = 1.0


def share(count: NDArray[Any], add: float = ADD) -> Shares:
    """(count_i + add) / Σ_j (count_j + add) along the last axis."""
    smooth = np.asarray(count, np.float64) + add
    return np.asarray(smooth / smooth.sum(axis=-1, keepdims=True))


def recent(count_DV: NDArray[Any], half_life: float) -> Shares:
    """share_DV of what was shown *before* each day, a day's count worth half after `half_life` days.

    c_d = Σ_{d' < d} 2^(−(d − d' − 1) / half_life) · count_d'. The first day has nothing before it, and is given the
    second day's share.
    """
    decay = 0.5 ** (1 / half_life)
    before_DV = np.zeros(count_DV.shape)
    for day in range(1, len(count_DV)):
        before_DV[day] = before_DV[day - 1] * decay + count_DV[day - 1]
    if len(count_DV) > 1:
        before_DV[0] = before_DV[1]
    return share(before_DV)
