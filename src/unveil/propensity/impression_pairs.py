"""Shown: the impressions of a log, each with its user, item, day and hour.

Shapes: N impressions, D days, V items.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

Index = NDArray[np.int64]

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
HOURS = 24


@dataclass(frozen=True, eq=False)
class Shown:
    """Impressions in time order of their days, which count from the day of the first one (UTC)."""

    user_N: Index
    item_N: Index
    day_N: Index
    hour_N: Index
    taken_N: NDArray[np.bool_]
    n_users: int
    n_items: int
    first_day: int  # since 1970-01-01

    @classmethod
    def of(cls, log: Interactions) -> Self:
        """The rows that were shown: those marked as exposed, or all of a log that also has what users left."""
        if log.exposed is None and log.clicked is None:
            hint = "Name the column that says whether a row was taken with --clicked-col."
            raise UnveilError("this log has what users took and not what they were shown", hint=hint)
        if log.time is None:
            raise UnveilError("exposure is learnt along the days, and this log has no times")
        shown = log if log.exposed is None else log.where(log.exposed)
        if not len(shown):
            raise UnveilError("nothing was shown in this log: no row is marked as exposed")
        assert shown.time is not None
        day_N, first = shown.time // _DAY, int(shown.time.min() // _DAY)
        taken_N = np.ones(len(shown), bool) if shown.clicked is None else shown.clicked
        user_N, item_N = shown.user.astype(np.int64), shown.item.astype(np.int64)
        size = (len(log.users), len(log.items))
        return cls(user_N, item_N, day_N - first, hours(shown.time), taken_N, *size, first)

    def __len__(self) -> int:
        return len(self.user_N)

    @property
    def n_days(self) -> int:
        """Days from the first impression to the last, both counted."""
        return int(self.day_N.max()) + 1

    def where(self, rows: NDArray[Any]) -> Self:
        """Some of the impressions."""
        names = ("user_N", "item_N", "day_N", "hour_N", "taken_N")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def between(self, start: int, stop: int) -> Self:
        """The impressions from day `start` up to, not including, day `stop`."""
        return self.where((self.day_N >= start) & (self.day_N < stop))

    def counts(self, days: int, *, taken: bool = False) -> NDArray[np.float64]:
        """count_DV: how often each item was shown (or shown and taken) on each of the first `days` days."""
        rows = self.where(self.taken_N) if taken else self
        rows = rows.between(0, days)
        flat = np.bincount(rows.day_N * self.n_items + rows.item_N, minlength=days * self.n_items)
        return flat.reshape(days, self.n_items).astype(np.float64)


def days_of(time: NDArray[np.int64], first_day: int) -> Index:
    """Days since `first_day` of times in µs."""
    return np.asarray(time // _DAY - first_day, np.int64)


def hours(time: NDArray[np.int64]) -> Index:
    """Hours of the day (UTC), 0 to 23."""
    return np.asarray(time // _HOUR % HOURS, np.int64)


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
