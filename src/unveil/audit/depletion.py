"""The null that is easily forgotten: a static propensity, and nobody takes an item twice.

Who draws without replacement by fixed propensities meets the likely items first: an order that is not uniform, although
nothing changes with time. As a race: item i reaches a user at a time that is exponential with rate w_i, the same for
all; user u is watched until t_u and takes what has come by then. Rates and times are those that explain how often each
item was taken and how long each history is:

    Σ_u 1 − exp(−w_i t_u) = events of item i,    Σ_i 1 − exp(−w_i t_u) = events of user u

Given *which* items a user took, their times are exponentials cut off at t_u, and the order of these times is the order
of the history.

Shapes: N events, U users, V items, G groups of users with histories of about the same length, K different counts.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.timing import Floats, Timing, two_sided
from unveil.data.sequences import Sequences

_GRID = 400
_GROUPS, _TURNS = 100, 60
_MOST = 1 - 1e-6  # of the catalogue: who has taken all of it was watched for ever


def repeats(sequences: Sequences) -> int:
    """Events whose user had taken the item before: with any, drawing without replacement is not what happened."""
    pair_N = sequences.user_N.astype(np.int64) * sequences.n_items + sequences.item_N
    return len(pair_N) - len(np.unique(pair_N))


def expected_means(sequences: Sequences, u_N: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """mean_V of u under this null: the mean over `draws` orders of all histories, `u_N` staying where it is."""
    rate_N = _rates(sequences)
    total_V = np.zeros(sequences.n_items)
    for _ in range(draws):
        drawn_N = u_N[_drawn(sequences, rate_N, rng)]
        total_V += np.bincount(sequences.item_N, weights=drawn_N, minlength=sequences.n_items)
    return np.asarray(total_V / (draws * np.maximum(np.bincount(sequences.item_N, minlength=sequences.n_items), 1)))


def against_depletion(timing: Timing, expected_V: Floats, draws: int) -> tuple[Floats, Floats]:
    """z_V and p_V of the items' mean places less those expected, with the variance of random order.

    The orders are close to random ones, and so are the variances; (1 + 1/draws) pays for the mean being drawn.
    """
    error_V = np.sqrt(timing.variance_V * (1 + 1 / draws))
    z_V = np.divide(timing.mean_V - expected_V, error_V, out=np.zeros_like(error_V), where=timing.tested_V)
    return z_V, two_sided(z_V)


def _rates(sequences: Sequences) -> Floats:
    """w_i · t_u of each event."""
    count_V = np.bincount(sequences.item_N, minlength=sequences.n_items)
    rate_V = static_rates(count_V, sequences.length_U)
    time_U = watched_until(rate_V, sequences.length_U)
    return np.asarray(rate_V[sequences.item_N] * np.repeat(time_U, sequences.length_U))


def static_rates(count_V: NDArray[Any], length_U: NDArray[Any]) -> Floats:
    """w_V that explains the counts, by turns with the times that explain the lengths; users of a group share a time.

    Each turn multiplies a rate by (counted / expected). What is expected is concave in the rate, so that from below
    it never overshoots. Items that were taken equally often have the same rate, which is found once.
    """
    length_G, users_G = _grouped(length_U)
    count_K, items_K = np.unique(count_V[count_V > 0], return_counts=True)
    rate_K, time_G = count_K / len(length_U), length_G / items_K.sum()
    for _ in range(_TURNS):
        rate_K *= count_K / (-np.expm1(-np.outer(rate_K, time_G)) @ users_G)
        time_G *= length_G / (-np.expm1(-np.outer(time_G, rate_K)) @ items_K)
    found_V = np.zeros(len(count_V))
    found_V[count_V > 0] = rate_K[np.searchsorted(count_K, count_V[count_V > 0])]
    return found_V


def _grouped(length_U: NDArray[Any]) -> tuple[Floats, Floats]:
    """Mean length and number of users of groups of like length."""
    ordered = np.sort(length_U[length_U > 0]).astype(float)
    parts = np.array_split(ordered, min(_GROUPS, len(ordered)))
    return np.array([part.mean() for part in parts]), np.array([len(part) for part in parts], float)


def watched_until(rate_V: Floats, length_U: NDArray[Any]) -> Floats:
    """t_u with Σ_i 1 − exp(−w_i t_u) = length of the history, read off a fine grid."""
    rate_K, items_K = np.unique(rate_V[rate_V > 0], return_counts=True)
    grid = np.geomspace(1e-3 / rate_K[-1], 50 / rate_K[0], _GRID)
    arrived = np.concatenate([-np.expm1(-np.outer(part, rate_K)) @ items_K for part in np.array_split(grid, 20)])
    wanted_U = np.minimum(length_U, _MOST * items_K.sum())
    return np.asarray(np.interp(wanted_U, np.concatenate([[0], arrived]), np.concatenate([[0], grid])))


def _drawn(sequences: Sequences, rate_N: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """Where each event goes in one order: arrival times as shares of the time watched, ranked within each user."""
    uniform_N = rng.random(len(rate_N))
    with np.errstate(divide="ignore", invalid="ignore"):
        time_N = np.where(rate_N > 1e-9, -np.log1p(uniform_N * np.expm1(-rate_N)) / rate_N, uniform_N)
    order_N = np.argsort(sequences.user_N + time_N / 2)  # users lie end to end, and stay there
    place_N = np.empty(len(order_N), np.int64)
    place_N[order_N] = np.arange(len(order_N))
    return place_N
