"""ExposureModel: how likely an item is to be what a user is shown at an impression.

Shapes: U users, V items, H hours of the day, D days, K factors, M places asked about.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unveil.data.vocabulary import Vocabulary

Floats = NDArray[np.float32]
Places = NDArray[Any]

#: The user or the item that the model has never met.
STRANGER = -1


@dataclass(frozen=True, eq=False)
class ExposureModel:
    """θ_sid = σ(curve(ψ)), the probability that item i is what user s is shown at an impression on day d:

    ψ = centre + slope · log recent_di + slope' · log steady_di + Σ_k P_sk Q_ik W_hk

    with the item's share of the impressions before that day, of late and over a longer time, and h the hour of the
    day. The shares are the item's bias, one that follows the time; a user needs none, since every impression shows one
    item. A stranger among users has P = 0, one among items the smallest shares and Q = 0: what remains is popularity. A
    day outside those of the table is read at the nearest one that is in it.
    """

    users: Vocabulary
    items: Vocabulary
    P_UK: Floats
    Q_VK: Floats
    W_HK: Floats
    recent_DV: Floats  # log shares
    steady_DV: Floats  # log shares
    line: tuple[float, float, float]  # centre, slope, slope'
    curve_B2: Floats  # the calibration: points (ψ, calibrated ψ), straight lines between them
    first_day: int

    @property
    def n_days(self) -> int:
        """Days whose recent shares are known."""
        return len(self.recent_DV)

    def theta(self, user_M: Places, item_M: Places, day_M: Places, hour_M: Places) -> Floats:
        """θ_M; strangers are −1."""
        return self._probability(self.psi(user_M, item_M, day_M, hour_M))

    def psi(self, user_M: Places, item_M: Places, day_M: Places, hour_M: Places) -> Floats:
        """ψ_M, before calibration."""
        P_MK = _rows(self.P_UK, user_M)
        product_M = np.einsum("mk,mk,mk->m", P_MK, _rows(self.Q_VK, item_M), self.W_HK[hour_M])
        return np.asarray(self.popularity(item_M, day_M) + product_M, np.float32)

    def theta_of_all(self, user_M: Places, day_M: Places, hour_M: Places) -> Floats:
        """θ_MV of all the model's items, then of a stranger in the last column."""
        product_MV = (_rows(self.P_UK, user_M) * self.W_HK[hour_M]) @ _with_stranger(self.Q_VK).T
        item_V = np.append(np.arange(len(self.items)), STRANGER)
        day, nth_M = np.unique(self._day(day_M), return_inverse=True)
        row_DV = np.stack([self.popularity(item_V, np.full(len(item_V), each)) for each in day])
        return self._probability(row_DV[nth_M] + product_MV)

    def theta_over_days(self, user_M: Places, item_M: Places) -> Floats:
        """The mean of θ over all days, at the hours' mean factor: the static propensity of a user and an item."""
        product_M = np.einsum("mk,mk,k->m", _rows(self.P_UK, user_M), _rows(self.Q_VK, item_M), self.W_HK.mean(0))
        total_M = np.zeros(len(user_M), np.float64)
        for day in range(self.n_days):
            total_M += self._probability(self.popularity(item_M, np.full(len(item_M), day)) + product_M)
        return np.asarray(total_M / self.n_days, np.float32)

    def popularity(self, item_M: Places, day_M: Places) -> Floats:
        """The part of ψ that is the same for all users."""
        centre, slope, other = self.line
        recent_DV, steady_DV = self._with_strangers
        at = self._day(day_M), item_M
        return np.asarray(centre + slope * recent_DV[at] + other * steady_DV[at], np.float32)

    @cached_property
    def _with_strangers(self) -> tuple[Floats, Floats]:
        """Both tables with a last column, which −1 finds: the smallest share of each day."""
        recent_DV, steady_DV = (
            np.concatenate([table_DV, table_DV.min(axis=1, keepdims=True)], axis=1)
            for table_DV in (self.recent_DV, self.steady_DV)
        )
        return recent_DV, steady_DV

    def _day(self, day_M: Places) -> Places:
        return np.clip(day_M, 0, self.n_days - 1)

    def _curve(self, psi: NDArray[Any]) -> NDArray[Any]:
        """Beyond its ends the curve rises by one for one."""
        at_B, to_B = self.curve_B2.T.astype(np.float64)
        inside = np.clip(psi, at_B[0], at_B[-1])
        return np.asarray(np.interp(inside, at_B, to_B) + (psi - inside))

    def _probability(self, logit: NDArray[Any]) -> Floats:
        theta: Floats = np.asarray(expit(self._curve(logit)), np.float32)
        return np.maximum(theta, np.finfo(np.float32).tiny)


def _rows(table_RK: Floats, index_M: Places) -> Floats:
    """The rows of a table; zeros for strangers."""
    return np.asarray(np.where((index_M != STRANGER)[:, None], table_RK[index_M], 0), np.float32)


def _with_stranger(table_RK: Floats) -> Floats:
    return np.concatenate([table_RK, np.zeros((1, table_RK.shape[1]), np.float32)])
