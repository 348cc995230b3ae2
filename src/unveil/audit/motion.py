"""Does popularity change along user histories, or along the calendar? One null: a static propensity without repeats.

Drawing without replacement with fixed propensities gives the likely items first: an order that is not uniform, although
nothing changes with time. As a race: item i reaches a user at a time that is exponential with rate w_i, the same for
all users; user u is observed until t_u and interacts with all items that came by then. Rates and times are those that
explain the number of interactions of each item and the length of each history:

    Σ_u 1 − exp(−w_i t_u) = events of item i,    Σ_i 1 − exp(−w_i t_u) = events of user u

Given *which* items a user has, their times are exponentials cut off at t_u, and the order of these times is the order
of the history.

Shapes: N events, U users, V items, G groups of users with histories of about the same length, K different
counts, P periods.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.exposure import rank_correlation
from unveil.audit.timing import (
    Family,
    Floats,
    Timing,
    positions,
    select,
    some_users,
    tied_share,
    timing,
    two_sided,
)
from unveil.data.interactions import Sequences, offsets


def expected_means(sequences: Sequences, u_N: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """mean_V of u under this null: the mean over `draws` orders of all histories, `u_N` staying where it is."""
    count_V = np.bincount(sequences.item_N, minlength=sequences.n_items)
    rate_V = static_rates(count_V, sequences.length_U)
    time_U = observed_until(rate_V, sequences.length_U)
    rate_N = rate_V[sequences.item_N] * np.repeat(time_U, sequences.length_U)
    total_V = np.zeros(sequences.n_items)
    for _ in range(draws):
        drawn_N = u_N[_drawn(sequences, rate_N, rng)]
        total_V += np.bincount(sequences.item_N, weights=drawn_N, minlength=sequences.n_items)
    return np.asarray(total_V / (draws * np.maximum(count_V, 1)))


def against_depletion(timing: Timing, expected_V: Floats, draws: int) -> tuple[Floats, Floats]:
    """z_V and p_V of the items' mean places less those expected, with the variance of random order, which is close. (1
    + 1/draws) pays for the mean being drawn."""
    error_V = np.sqrt(timing.variance_V * (1 + 1 / draws))
    z_V = np.divide(timing.mean_V - expected_V, error_V, out=np.zeros_like(error_V), where=timing.tested_V)
    return z_V, two_sided(z_V)


@dataclass(frozen=True, eq=False)
class PlaceTests:
    """Tests of all items by their places in histories, against random order and a static propensity."""

    timing: Timing
    order: Family  # against random order, ties as the file has them
    mean: Family  # the same by the mean place alone, to set beside `static`
    shared: Family | None  # the same, events of one moment sharing their places; None: no ties, or no clock
    static: Family | None  # against a static propensity without repeats; None: not drawn, or users come back to items
    expected_V: Floats | None  # mean places under that null
    tied: float | None

    @classmethod
    def of(cls, sequences: Sequences, expected_V: Floats | None, draws: int) -> "PlaceTests":
        """`expected_V` is what so many draws gave, see `expected_means`."""
        found, tied, shared = timing(sequences, positions(sequences)), tied_share(sequences), None
        tested_V = found.tested_V
        if tied:
            by_moment = timing(sequences, positions(sequences, tied=True))
            shared = Family.of(by_moment.z_V, by_moment.p_V, by_moment.tested_V)
        static = None if expected_V is None else Family.of(*against_depletion(found, expected_V, draws), tested_V)
        order, mean = Family.of(found.z_V, found.p_V, tested_V), Family.of(found.z_V, two_sided(found.z_V), tested_V)
        return cls(found, order, mean, shared, static, expected_V, tied)

    @property
    def by_popularity(self) -> float:
        """Spearman's correlation, over the tested items, of the number of events with the mean place."""
        return rank_correlation(*(each[self.order.tested_V] for each in (self.timing.count_V, self.timing.mean_V)))

    def families(self) -> dict[str, Family]:
        every = {"order": self.order, "shared": self.shared, "static": self.static}
        return {name: family for name, family in every.items() if family is not None}


def static_rates(count_V: NDArray[Any], length_U: NDArray[Any]) -> Floats:
    """w_V that explains the counts, by turns with the times that explain the lengths; users of a group share a time.

    Each turn multiplies a rate by (counted / expected), which is concave in the rate: from below it never overshoots.
    """
    ordered = np.sort(length_U[length_U > 0]).astype(float)
    groups = np.array_split(ordered, min(100, len(ordered)))
    length_G, users_G = np.array([part.mean() for part in groups]), np.array([len(part) for part in groups], float)
    count_K, items_K = np.unique(count_V[count_V > 0], return_counts=True)
    rate_K, time_G = count_K / len(length_U), length_G / items_K.sum()
    for _ in range(60):
        rate_K *= count_K / (-np.expm1(-np.outer(rate_K, time_G)) @ users_G)
        time_G *= length_G / (-np.expm1(-np.outer(time_G, rate_K)) @ items_K)
    found_V = np.zeros(len(count_V))
    found_V[count_V > 0] = rate_K[np.searchsorted(count_K, count_V[count_V > 0])]
    return found_V


def observed_until(rate_V: Floats, length_U: NDArray[Any]) -> Floats:
    """t_u with Σ_i 1 − exp(−w_i t_u) = length of the history, read off a fine grid."""
    rate_K, items_K = np.unique(rate_V[rate_V > 0], return_counts=True)
    grid = np.geomspace(1e-3 / rate_K[-1], 50 / rate_K[0], 400)
    arrived = np.concatenate([-np.expm1(-np.outer(part, rate_K)) @ items_K for part in np.array_split(grid, 20)])
    wanted_U = np.minimum(length_U, (1 - 1e-6) * items_K.sum())  # a user with all items would be observed for ever
    return np.asarray(np.interp(wanted_U, np.concatenate([[0], arrived]), np.concatenate([[0], grid])))


def _drawn(sequences: Sequences, rate_N: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Where each event goes in one order: arrival times as shares of the time observed, ranked within each user."""
    uniform_N = rng.random(len(rate_N))
    with np.errstate(divide="ignore", invalid="ignore"):
        time_N = np.where(rate_N > 1e-9, -np.log1p(uniform_N * np.expm1(-rate_N)) / rate_N, uniform_N)
    order_N = np.argsort(sequences.user_N + time_N / 2)  # users lie end to end, and stay there
    place_N = np.empty(len(order_N), np.int64)
    place_N[order_N] = np.arange(len(order_N))
    return place_N


PERIODS = 10
HEAD = 100  # items of a head: so many, or a tenth of the catalogue where that is less


@dataclass(frozen=True)
class Heads:
    """Share of the K most popular items of one period that are among the K of another, by periods apart."""

    size: int  # K
    shared: tuple[float, ...]  # one period apart, two apart, …: means over all such pairs of periods
    chance: tuple[float, ...]  # the same with the periods of all events shuffled: what finite counts alone leave


def heads(count_VP: NDArray[np.int64], shuffled_VP: NDArray[np.int64]) -> Heads:
    """Compare all pairs of periods; `shuffled_VP` are the counts with the periods of all events shuffled."""
    size = max(1, min(HEAD, len(count_VP) // 10))
    return Heads(size, _by_lag(count_VP, size), _by_lag(shuffled_VP, size))


def counts(item_N: NDArray[Any], period_N: NDArray[Any], n_items: int, periods: int = PERIODS) -> NDArray[np.int64]:
    """count_VP: events of each item in each period."""
    cell_N = item_N.astype(np.int64) * periods + period_N
    return np.bincount(cell_N, minlength=n_items * periods).reshape(n_items, periods)


def _by_lag(count_VP: NDArray[np.int64], size: int) -> tuple[float, ...]:
    inside_VP = np.zeros(count_VP.shape)
    np.put_along_axis(inside_VP, np.argsort(-count_VP, axis=0, kind="stable")[:size], 1.0, axis=0)
    common_PP = inside_VP.T @ inside_VP / size
    return tuple(float(np.diagonal(common_PP, lag).mean()) for lag in range(1, len(common_PP)))


#: Whole histories of users drawn at random are tested where the log has more events: enough to see any motion.
MOST_EVENTS = 5_000_000
FEW = 0.05  # share of the tested items below which a static propensity is good enough
MOVERS = 4  # items whose share is followed from period to period


@dataclass(frozen=True)
class Tested:
    """How many items differ from a null at 5%, corrected for their number."""

    items: int  # with ten events or more
    holm: int  # hardly one of them by chance
    fdr: int  # at most one in twenty of them by chance

    @property
    def share(self) -> float:
        """Of the tested items, by Holm's correction."""
        return self.holm / self.items if self.items else 0.0


@dataclass(frozen=True)
class Mover:
    """An item whose popularity changes: its share of the interactions, period by period."""

    item: int
    events: int
    z: float  # of its mean place: below 0 early, above 0 late
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Motion:
    """What was found along one clock."""

    events: int  # that were tested: first interactions, of a random part of the users where there are very many
    periods: int
    random_order: Tested  # against every order being equally likely
    static: Tested | None  # against a static propensity without repeats; None where it does not apply
    dispersion: float  # mean z² of the items' mean places: 1 by chance
    typical_shift: float  # of the items' mean places from the middle, beyond chance
    heads: Heads
    movers: tuple[Mover, ...]

    @property
    def rejecting(self) -> Tested:
        """The test that answers whether a static propensity is enough."""
        return self.static if self.static is not None else self.random_order

    @property
    def mostly_still(self) -> bool:
        """Whether so few items reject a static propensity that one is good enough."""
        return self.rejecting.share < FEW


def along_histories(first: Sequences, rng: np.random.Generator) -> Motion | None:
    """By place in the history; events of one moment share their places. None where no item can be tested."""
    part = some_users(first, MOST_EVENTS, rng)
    u_N = positions(part, tied=True)
    found = timing(part, u_N)
    if not found.tested_V.any():
        return None
    draws = int(np.clip(10_000_000 // len(part), 1, 50))
    z_V, p_V = against_depletion(found, expected_means(part, u_N, draws, rng), draws)
    return _motion(part, u_N, found, Family.of(z_V, p_V, found.tested_V), rng)


def along_calendar(first: Sequences, rng: np.random.Generator) -> Motion | None:
    """By the calendar: all events of all users as one history. None without a clock that moves, or items to test."""
    part = some_users(first, MOST_EVENTS, rng)
    time_N = part.time_N
    if time_N is None or not len(time_N) or time_N.min() == time_N.max():
        return None
    whole = select(part, np.argsort(time_N, kind="stable"), offsets(np.array([len(part)])))
    u_N = positions(whole, tied=True)
    found = timing(whole, u_N)
    return _motion(whole, u_N, found, None, rng) if found.tested_V.any() else None


def _motion(
    sequences: Sequences, u_N: Floats, found: Timing, static: Family | None, rng: np.random.Generator
) -> Motion:
    period_N = np.minimum((u_N * PERIODS).astype(np.int8), PERIODS - 1)
    count_VP = counts(sequences.item_N, period_N, sequences.n_items)
    shuffled_VP = counts(sequences.item_N, rng.permutation(period_N), sequences.n_items)
    order = Family.of(found.z_V, found.p_V, found.tested_V)
    return Motion(
        len(sequences),
        PERIODS,
        Tested(order.tested, order.certain, order.discovered),
        None if static is None else Tested(static.tested, static.certain, static.discovered),
        found.dispersion,
        found.typical_shift,
        heads(count_VP, shuffled_VP),
        _movers(order if static is None else static, found, count_VP),
    )


def _movers(family: Family, found: Timing, count_VP: NDArray[Any]) -> tuple[Mover, ...]:
    """The items furthest from the null to either side, by turns, of those that differ by Holm's correction."""
    share_VP = count_VP / np.maximum(count_VP.sum(0), 1)
    return tuple(
        Mover(item, int(found.count_V[item]), float(family.z_V[item]), tuple(share_VP[item].tolist()))
        for sign in (-1, 1)
        for item in family.most(sign, MOVERS // 2)
    )
