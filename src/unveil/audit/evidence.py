"""What little evidence would decide: how many items shown at random tell which of two models users like more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unveil.data.interactions import Interactions

#: Differences in AUC that one may want to see.
DIFFERENCES = (0.05, 0.02, 0.01)
#: Assumed, unless measured: correlation of two models' percentiles, and the click rate of random items beside others'.
CORRELATION, RELATIVE_RATE = 0.5, 0.5
#: Of all slots, those that show a random item.
SHARE = 0.01
_DAY = 86_400 * 10**6


@dataclass(frozen=True)
class Needed:
    """To see one difference with 80% power at p < .05, half of the users choosing the model, half testing it."""

    difference: float
    clicks: int  # on items shown at random
    impressions: int | None  # shown at random; None: the click rate is not known
    days: float | None  # with 1% of the slots; None: no clock


@dataclass(frozen=True)
class Evidence:
    """What a log's own rates make of it."""

    clicks_per_day: float | None
    click_rate: float | None  # of the impressions
    needed: tuple[Needed, ...]


def clicks_needed(difference: float, *, correlation: float = CORRELATION, power: float = 0.8, p: float = 0.05) -> int:
    """Random clicks n of a paired t-test of two models' AUC, which is the mean percentile of the clicked items:

    n = (z_{1−p/2} + z_power)² · σ² / difference²,   σ² = (1 − correlation) / 6

    σ² is that of the difference of two percentiles, each with the variance 1/12 of a uniform one; it is an upper bound
    where models are good. Clicks count as independent: several of one user are worth less.
    """
    from scipy.special import ndtri

    z = float(ndtri(1 - p / 2) + ndtri(power))
    return int(np.ceil(z**2 * (1 - correlation) / 6 / difference**2))


def evidence(log: Interactions, differences: Sequence[float] = DIFFERENCES) -> Evidence:
    """Twice the clicks, since half of them choose; days = clicks / (1% · clicks a day · ½), with or without a rate.

    A random item is assumed to be clicked half as often as one that the system chose.
    """
    rate = None if log.clicked is None or log.clicked.all() else float(log.clicked.mean())
    a_day = len(log.interacted()) / days(log) if days(log) >= 1 else None
    rows = []
    for difference in differences:
        clicks = 2 * clicks_needed(difference)
        shown = None if rate is None else int(np.ceil(clicks / (rate * RELATIVE_RATE)))
        rows.append(Needed(difference, clicks, shown, a_day and clicks / (a_day * SHARE * RELATIVE_RATE)))
    return Evidence(a_day, rate, tuple(rows))


def days(log: Interactions) -> float:
    """From the first row to the last; below 1 there is no calendar, but places in an order, or nothing to go by."""
    return 0.0 if log.time is None or not len(log) else float(log.time.max() - log.time.min()) / _DAY
