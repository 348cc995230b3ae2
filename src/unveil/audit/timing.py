"""Does an item occur at a particular time in user histories? A test of each item against random order.

Under a static propensity, given the items of a user, every order is equally likely (if items may be repeated; see
`motion` for the other case): mean and variance are those of drawing positions from each history without replacement.

Shapes: N events, U users, V items, P pairs of a user and an item, J = 2 components.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import counted
from unveil.data.interactions import Offsets, Sequences, offsets
from unveil.evaluation.statistics import holm

Floats = NDArray[np.float64]

ALPHA = 0.05
LEAST = 10  # items with fewer events are not tested: the normal approximation would be a guess
_TINY = 1e-12


def positions(sequences: Sequences, *, tied: bool = False) -> Floats:
    """u_N = (place + ½) / n: the position of each event in its user's history of n events, between 0 and 1.

    With `tied`, events of a user at the same time share the mean of their positions: their order is only the file's.
    """
    length_U = sequences.length_U
    place_N: NDArray[Any] = np.arange(len(sequences)) - np.repeat(sequences.offset_U1[:-1], length_U)
    if tied and sequences.time_N is not None:
        start, moment_N, size = moments(sequences)
        place_N = (place_N[start] + (size - 1) / 2)[moment_N]
    return np.asarray((place_N + 0.5) / np.repeat(length_U, length_U), np.float64)


def tied_share(sequences: Sequences) -> float | None:
    """Share of the events with the same user and time as another; None without timestamps."""
    if sequences.time_N is None:
        return None
    _, moment_N, size = moments(sequences)
    return float((size[moment_N] > 1).mean())


def moments(sequences: Sequences) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Runs of events of one user at one time: their starts, the run of each event, and their sizes."""
    user_N, time_N = sequences.user_N, sequences.time_N
    assert time_N is not None
    new_N = np.ones(len(sequences), bool)
    new_N[1:] = (user_N[1:] != user_N[:-1]) | (time_N[1:] != time_N[:-1])
    moment_N = np.cumsum(new_N) - 1
    return np.flatnonzero(new_N), moment_N, np.bincount(moment_N)


@dataclass(frozen=True, eq=False)
class Timing:
    """Mean and spread of each item's positions, against random order; also of items below `LEAST` events."""

    count_V: NDArray[np.int64]
    mean_V: Floats  # of u over the item's events
    z_V: Floats  # of the mean: below 0 early, above 0 late
    z_spread_V: Floats  # of (u − ½)²: below 0 in the middle of histories, above 0 at their ends
    p_V: Floats  # of both together
    variance_V: Floats  # of the mean, under random order

    @cached_property
    def tested_V(self) -> NDArray[np.bool_]:
        """Items with events enough, and some in histories that have an order."""
        return np.asarray((self.count_V >= LEAST) & (self.variance_V > _TINY))

    @property
    def dispersion(self) -> float:
        """Mean of z² over the tested items: 1 under random order."""
        return float((self.z_V[self.tested_V] ** 2).mean())

    @property
    def typical_shift(self) -> float:
        """Root mean square of the items' true distances from the middle: what chance does not explain of them."""
        beyond = ((self.mean_V - 0.5)[self.tested_V] ** 2 - self.variance_V[self.tested_V]).mean()
        return float(np.sqrt(max(beyond, 0.0)))


def timing(sequences: Sequences, u_N: Floats) -> Timing:
    """Test every item.

    S_i = Σ over its events of (φ₁, φ₂), φ₁ = u − ½ and φ₂ = (u − ½)², each less its mean over the user's history.
    Under random order S_i has mean 0 and variance V_i = Σ over users of m (n − m) / (n − 1) · C_u, where the user
    has the item m times among n events and C_u is the covariance of φ over that history. Sᵀ V⁻¹ S is χ² with two
    degrees of freedom: one for when, one for how concentrated (Neyman's smooth test of order two).
    """
    item_N, n_items = sequences.item_N, sequences.n_items
    phi_NJ = np.stack([u_N - 0.5, (u_N - 0.5) ** 2], axis=1)
    phi_NJ -= np.repeat(_user_means(sequences, phi_NJ), sequences.length_U, axis=0)
    s1_V, s2_V = (_summed(item_N, phi_N, n_items) for phi_N in phi_NJ.T)
    v11_V, v12_V, v22_V = _variances(sequences, phi_NJ)
    z_V = _standardised(s1_V, v11_V)
    # P(χ²₂ > s) = exp(−s/2). Where only the mean can vary (histories of two events), P(|Z| ≥ |z|).
    determinant = v11_V * v22_V - v12_V * v12_V
    whole = determinant > _TINY * np.maximum(v11_V * v22_V, _TINY)
    form = v22_V * s1_V * s1_V - 2 * v12_V * s1_V * s2_V + v11_V * s2_V * s2_V
    chi2_V = np.divide(form, determinant, out=np.zeros(n_items), where=whole)
    count_V = np.bincount(item_N, minlength=n_items)
    some_V = np.maximum(count_V, 1)
    return Timing(
        count_V,
        mean_V=_summed(item_N, u_N, n_items) / some_V,
        z_V=z_V,
        z_spread_V=_standardised(s2_V, v22_V),
        p_V=np.where(whole, np.exp(-chi2_V / 2), two_sided(z_V)),
        variance_V=v11_V / some_V**2,
    )


def _user_means(sequences: Sequences, value_NJ: Floats) -> Floats:
    """Differences of running sums at the ends of histories; 0 for users without events."""
    running = np.concatenate([np.zeros((1, value_NJ.shape[1])), np.cumsum(value_NJ, axis=0)])
    total_UJ = np.diff(running[sequences.offset_U1], axis=0)
    return np.asarray(total_UJ / np.maximum(sequences.length_U, 1)[:, None])


def _variances(sequences: Sequences, phi_NJ: Floats) -> list[Floats]:
    """The entries 11, 12 and 22 of V_i: each pair of a user and an item adds its own."""
    a_N, b_N = phi_NJ.T
    C_U3 = _user_means(sequences, np.stack([a_N * a_N, a_N * b_N, b_N * b_N], axis=1))
    pair_P, times_P = np.unique(pairs(sequences), return_counts=True)
    user_P, item_P = pair_P // sequences.n_items, pair_P % sequences.n_items
    length_P = sequences.length_U[user_P]
    factor_P = times_P * (length_P - times_P) / np.maximum(length_P - 1, 1)
    return [_summed(item_P, factor_P * C_U[user_P], sequences.n_items) for C_U in C_U3.T]


def pairs(sequences: Sequences) -> NDArray[np.int64]:
    """user · V + item of every event."""
    return sequences.user_N.astype(np.int64) * sequences.n_items + sequences.item_N


def two_sided(z: Floats) -> Floats:
    """P(|Z| ≥ |z|) of a standard normal."""
    from scipy.special import ndtr

    return np.asarray(2 * ndtr(-np.abs(z)))


def _standardised(sum_V: Floats, variance_V: Floats) -> Floats:
    return np.divide(sum_V, np.sqrt(variance_V), out=np.zeros_like(sum_V), where=variance_V > _TINY)


def _summed(index: NDArray[Any], value: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(index, weights=value, minlength=size), np.float64)


def false_discovery(p_H: Floats) -> Floats:
    """Benjamini and Hochberg's q of a family of H p-values: with p_(1) ≤ … ≤ p_(H),

    q_(h) = min over g ≥ h of p_(g) H / g

    Rejecting where q < α keeps the expected share of false claims among all claims below α.
    """
    order_H = np.argsort(p_H, kind="stable")
    scaled_H = p_H[order_H] * len(p_H) / np.arange(1, len(p_H) + 1)
    q_H = np.empty(len(p_H))
    q_H[order_H] = np.minimum(1.0, np.minimum.accumulate(scaled_H[::-1])[::-1])
    return q_H


def first_interactions(sequences: Sequences) -> Sequences:
    """The first interaction of each user with each item; every event keeps its step."""
    first = np.sort(np.unique(pairs(sequences), return_index=True)[1])
    return select(sequences, first, offsets(counted(sequences.user_N[first], sequences.n_users)))


def select(sequences: Sequences, at_N: NDArray[Any], offset_U1: Offsets) -> Sequences:
    """These events, in this order, as the histories that begin at these offsets."""
    item_N, step_N, event_N = (column_N[at_N] for column_N in (sequences.item_N, sequences.step_N, sequences.event_N))
    return Sequences(item_N, step_N, event_N, sequences.clock, offset_U1, sequences.n_items, sequences.n_steps)


def some_users(sequences: Sequences, most: int, rng: np.random.Generator) -> Sequences:
    """The whole histories of users drawn at random, as many as have at most `most` events together; at least one."""
    if len(sequences) <= most:
        return sequences
    order_U = rng.permutation(sequences.n_users)
    within_U = np.cumsum(sequences.length_U[order_U]) <= most
    within_U[0] = True
    kept_U = np.zeros(sequences.n_users, bool)
    kept_U[order_U[within_U]] = True
    return sequences.cut(np.zeros_like(sequences.length_U), np.where(kept_U, sequences.length_U, 0))


@dataclass(frozen=True, eq=False)
class Family:
    """z and p of every item, p corrected by Holm and by Benjamini and Hochberg (q), and how many items differ."""

    z_V: Floats
    p_V: Floats
    tested_V: NDArray[np.bool_]
    holm_V: Floats
    q_V: Floats
    tested: int  # items with events enough
    certain: int  # items that differ by Holm's correction: hardly one of them by chance
    discovered: int  # items that differ by Benjamini and Hochberg's: at most one in twenty by chance

    @classmethod
    def of(cls, z_V: Floats, p_V: Floats, tested_V: NDArray[np.bool_]) -> "Family":
        """Correct the p-values of the tested items; the others have 1."""
        holm_V, q_V = np.ones(len(p_V)), np.ones(len(p_V))
        holm_V[tested_V], q_V[tested_V] = holm(p_V[tested_V]), false_discovery(p_V[tested_V])
        counts = (int(which_V.sum()) for which_V in (tested_V, holm_V < ALPHA, q_V < ALPHA))
        return cls(z_V, p_V, tested_V, holm_V, q_V, *counts)

    def most(self, sign: int, count: int) -> list[int]:
        """The items that differ by Holm's correction and lie furthest to one side, furthest first."""
        order = np.argsort(-sign * self.z_V, kind="stable")
        return [int(item) for item in order if self.holm_V[item] < ALPHA and sign * self.z_V[item] > 0][:count]

    def plain(self) -> dict[str, Any]:
        early, late = (int(((self.q_V < ALPHA) & (sign * self.z_V > 0)).sum()) for sign in (-1, 1))
        return {"tested": self.tested, "holm": self.certain, "fdr": self.discovered, "early": early, "late": late}


@dataclass(frozen=True)
class Pair:
    """Of the users who chose both: how many chose `second` later, how many `first`, and how many both at once."""

    first: int
    second: int
    later: int
    earlier: int
    together: int
    p: float  # two-sided sign test: later and earlier are equally likely in random order

    @property
    def share(self) -> float | None:
        """Who chose `second` later, of those whose order is known."""
        known = self.later + self.earlier
        return self.later / known if known else None


def pair(sequences: Sequences, first: int, second: int) -> Pair:
    """Compare the first time each user chose either; ties in time are not counted."""
    from scipy.stats import binomtest

    first_2U = np.full((2, sequences.n_users), -1)  # the place of each user's first event with the item; −1: never
    for first_U, item in zip(first_2U, (first, second), strict=True):
        at_M = np.flatnonzero(sequences.item_N == item)[::-1]
        first_U[sequences.user_N[at_M]] = at_M  # the first of a user is written last
    a_B, b_B = first_2U[:, (first_2U >= 0).all(axis=0)]
    time_N = sequences.time_N
    together_B = np.zeros(len(a_B), bool) if time_N is None else np.asarray(time_N[a_B] == time_N[b_B])
    later, earlier = int((~together_B & (b_B > a_B)).sum()), int((~together_B & (b_B < a_B)).sum())
    p = float(binomtest(later, later + earlier).pvalue) if later + earlier else 1.0
    return Pair(first, second, later, earlier, int(together_B.sum()), p)
