"""Impressions with day and hour, pairs of impressions with negatives, and how good probabilities of such pairs are.

Every impression has V pairs, of which one was shown. Of the others a few are drawn, item i with the expected number
r_i = K q_i; to train or evaluate as if all were there, a drawn pair's odds are corrected by r_i, or its weight is
1 / r_i. Shapes: N impressions, K negatives of each, M pairs, D days, V items, B bins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

Index = NDArray[np.int64]
Floats = NDArray[np.float64]

HOURS = 24
_HOUR = 3_600_000_000
_DAY = HOURS * _HOUR


@dataclass(frozen=True, eq=False)
class Impressions:
    """The impressions of a log; days count from that of the first one (UTC)."""

    user_N: Index
    item_N: Index
    day_N: Index
    hour_N: Index
    clicked_N: NDArray[np.bool_]
    n_users: int
    n_items: int
    first_day: int  # since 1970-01-01

    @classmethod
    def of(cls, log: Interactions) -> Self:
        """The rows marked as exposed, or all rows of a log that has impressions without a click."""
        if log.exposed is None and log.clicked is None:
            hint = "Name the column that says whether a row was clicked with --clicked-col."
            raise UnveilError("this log has interactions and no impressions", hint=hint)
        if log.time is None:
            raise UnveilError("exposure is learnt by day and hour, and this log has no times")
        shown = log if log.exposed is None else log.where(log.exposed)
        if not len(shown):
            raise UnveilError("nothing was shown in this log: no row is marked as exposed")
        assert shown.time is not None
        first = int(shown.time.min() // _DAY)
        clicked_N = np.ones(len(shown), bool) if shown.clicked is None else shown.clicked
        index_N = shown.user.astype(np.int64), shown.item.astype(np.int64)
        return cls(*index_N, *day_and_hour(shown.time, first), clicked_N, len(log.users), len(log.items), first)

    def __len__(self) -> int:
        return len(self.user_N)

    @property
    def n_days(self) -> int:
        return int(self.day_N.max()) + 1

    def where(self, rows: NDArray[Any]) -> Self:
        names = ("user_N", "item_N", "day_N", "hour_N", "clicked_N")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def between(self, start: int, stop: int) -> Self:
        return self.where((self.day_N >= start) & (self.day_N < stop))

    def counts(self, *, clicked: bool = False) -> Floats:
        """count_DV: how often each item was shown (or clicked) on each day."""
        rows, size = self.where(self.clicked_N) if clicked else self, self.n_days * self.n_items
        flat = np.bincount(rows.day_N * self.n_items + rows.item_N, minlength=size)
        return flat.reshape(-1, self.n_items).astype(np.float64)


def day_and_hour(time: Index, first_day: int) -> tuple[Index, Index]:
    """Days since `first_day` and hours of the day (UTC), 0 to 23, of times in µs."""
    return np.asarray(time // _DAY - first_day, np.int64), np.asarray(time // _HOUR % HOURS, np.int64)


def share(count: NDArray[Any], add: float = 1.0) -> Floats:
    """(count_i + add) / Σ_j (count_j + add) along the last axis: no item has none."""
    smooth = np.asarray(count, np.float64) + add
    return np.asarray(smooth / smooth.sum(axis=-1, keepdims=True))


def recent_share(count_DV: NDArray[Any], half_life: float) -> Floats:
    """share_DV of what was shown *before* each day, a day's count worth half after `half_life` days.

    c_d = Σ_{d' < d} 2^(−(d − d' − 1) / half_life) · count_d'. The first day has the second day's share.
    """
    decay = 0.5 ** (1 / half_life)
    before_DV = np.zeros(count_DV.shape)
    for day in range(1, len(count_DV)):
        before_DV[day] = before_DV[day - 1] * decay + count_DV[day - 1]
    if len(count_DV) > 1:
        before_DV[0] = before_DV[1]
    return share(before_DV)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs, whether they were shown, and r_i: the expected number of draws of such a pair."""

    user_M: Index
    item_M: Index
    day_M: Index
    hour_M: Index
    shown_M: NDArray[np.bool_]
    rate_M: Floats

    def __len__(self) -> int:
        return len(self.user_M)

    @property
    def sides(self) -> tuple[Index, Index, Index, Index]:
        return self.user_M, self.item_M, self.day_M, self.hour_M

    @property
    def weight_M(self) -> Floats:
        """How many pairs each stands for: 1 if it was shown, 1 / r_i if it was drawn."""
        return np.where(self.shown_M, 1.0, 1 / self.rate_M)


def with_negatives(shown: Impressions, each: int, q_V: Floats, rng: np.random.Generator) -> Pairs:
    """The impressions, then `each` negatives of every one by q_V; a negative that is the item shown is left out."""
    drawn_NK = np.searchsorted(np.cumsum(q_V), rng.random((len(shown), each)) * q_V.sum()).clip(max=len(q_V) - 1)
    at_M, place_M = np.nonzero(drawn_NK != shown.item_N[:, None])
    row_M = np.concatenate([np.arange(len(shown)), at_M])
    shown_M = np.arange(len(row_M)) < len(shown)
    item_M = np.concatenate([shown.item_N, drawn_NK[at_M, place_M]])
    sides = (shown.user_N[row_M], item_M, shown.day_N[row_M], shown.hour_N[row_M])
    return Pairs(*sides, shown_M, each * q_V[item_M])


BINS = 15  # Bins of the calibration error


@dataclass(frozen=True)
class Calibration:
    """Pairs in bins of equal predicted mass: what was predicted there, and what was shown."""

    predicted: Sequence[float]  # mean θ of each bin
    observed: Sequence[float]  # share of its pairs that were shown
    impressions: Sequence[float]  # how many were expected there


@dataclass(frozen=True)
class Quality:
    """Figures of one model on held-out pairs.

    `ece`, the expected calibration error, is a share of the impressions: of 0.2, a fifth is in other bins than
    predicted.
    """

    auc: float
    log_loss: float  # nats for each impression, over all its V pairs
    ece: float
    mass: float  # the predicted number of impressions over the true one
    calibration: Calibration


def quality_of(theta_M: NDArray[Any], pairs: Pairs) -> Quality:
    """All figures, each pair with its weight."""
    theta, weight = np.asarray(theta_M, np.float64), pairs.weight_M
    loss_M = -np.where(pairs.shown_M, np.log(theta), np.log1p(-np.minimum(theta, 1 - 1e-12)))
    log_loss = float((weight * loss_M).sum() / float(pairs.shown_M.sum()))
    curve, ece, mass = calibration(theta, pairs.shown_M, weight)
    return Quality(auc(theta, pairs.shown_M, weight), log_loss, ece, mass, curve)


def calibration(theta_M: Floats, shown_M: NDArray[Any], weight_M: Floats) -> tuple[Calibration, float, float]:
    """The bins, the calibration error and the mass; what was shown may be a probability."""
    predicted_B, seen_B, size_B = binned(theta_M, shown_M, weight_M, BINS)
    there, shown = size_B > 0, float(shown_M.sum())
    columns = (predicted_B[there] / size_B[there], seen_B[there] / size_B[there], predicted_B[there])
    curve = Calibration(*(column_B.tolist() for column_B in columns))
    return curve, float(np.abs(predicted_B - seen_B).sum() / shown), float(predicted_B.sum() / shown)


def auc(theta_M: Floats, shown_M: NDArray[np.bool_], weight_M: Floats) -> float:
    """P(a pair that was shown has a higher θ than one that was not), ties counting half, weighted."""
    _, group_M = np.unique(theta_M, return_inverse=True)
    positive = np.bincount(group_M, weights=weight_M * shown_M)
    negative = np.bincount(group_M, weights=weight_M * ~shown_M)
    below = np.cumsum(negative) - negative / 2
    return float((positive * below).sum() / (positive.sum() * negative.sum()))


def binned(theta_M: Floats, shown_M: NDArray[Any], weight_M: Floats, bins: int) -> Iterator[Floats]:
    """Of bins of equal predicted mass: impressions predicted, true impressions, pairs. Equal θ share a bin."""
    order = np.argsort(theta_M, kind="stable")
    mass = np.cumsum((weight_M * theta_M)[order])
    place = np.minimum((bins * mass / mass[-1]).astype(np.int64), bins - 1)
    value, first = np.unique(theta_M[order], return_index=True)
    bin_M = place[first][np.searchsorted(value, theta_M)]
    for each_M in (weight_M * theta_M, weight_M * shown_M, weight_M):
        yield np.asarray(np.bincount(bin_M, weights=each_M, minlength=bins), np.float64)
