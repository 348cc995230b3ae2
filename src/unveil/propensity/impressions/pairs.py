"""Pairs of an impression and an item: the one that was shown, and some that could have been.

Every impression has V pairs, of which one was shown. Of the others a few are drawn, item i with the expected number
r_i = K q_i; to learn or judge as if all were there, a drawn pair's odds are corrected by r_i, or it weighs 1 / r_i.

Shapes: N impressions, K negatives of each, M pairs, V items.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.propensity.impressions.shares import share
from unveil.propensity.impressions.shown import Index, Shown

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs, whether they were shown, and r_i: how often such a pair is expected to be drawn where it was not."""

    user_M: Index
    item_M: Index
    day_M: Index
    hour_M: Index
    shown_M: NDArray[np.bool_]
    rate_M: Floats

    def __len__(self) -> int:
        return len(self.user_M)

    @property
    def weight_M(self) -> Floats:
        """How many pairs each stands for: 1 for one that was shown, 1 / r_i for one that was drawn."""
        return np.where(self.shown_M, 1.0, 1 / self.rate_M)


@dataclass(frozen=True, eq=False)
class Draw:
    """K negatives for each impression, by the law q_V, which mixes all items alike with what is shown most."""

    each: int
    q_V: Floats

    @classmethod
    def mixed(cls, each: int, count_V: NDArray[Any]) -> "Draw":
        """q = ½ · 1/V + ½ · share of the impressions: half are easy, half are hard."""
        return cls(each, 0.5 / len(count_V) + 0.5 * share(count_V))

    def pairs(self, shown: Shown, rng: np.random.Generator) -> Pairs:
        """The impressions, then their negatives; one that hits the item that was shown is left out."""
        drawn_NK = np.searchsorted(np.cumsum(self.q_V), rng.random((len(shown), self.each)) * self.q_V.sum())
        drawn_NK = np.minimum(drawn_NK, len(self.q_V) - 1)
        at_M, place_M = np.nonzero(drawn_NK != shown.item_N[:, None])
        item_M = drawn_NK[at_M, place_M]
        row_M = np.concatenate([np.arange(len(shown)), at_M])
        shown_M = np.arange(len(row_M)) < len(shown)
        item_M = np.concatenate([shown.item_N, item_M])
        return Pairs(
            shown.user_N[row_M],
            item_M,
            shown.day_N[row_M],
            shown.hour_N[row_M],
            shown_M,
            self.each * self.q_V[item_M],
        )
