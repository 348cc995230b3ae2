"""Does the order of interactions carry information? A shuffle test.

The statistic looks one interaction back: how often two users go from one item to the same next one,

    R = Σ_ab c_ab (c_ab − 1) / 2,   c_ab the number of times b directly follows a,

in the log and in shuffled histories. Interactions of the same time are put in random order before they are counted.
Shapes: N events, U users, W different transitions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.audit.timing import ALPHA, moments, some_users, tied_share
from unveil.data.interactions import Sequences


class Walk:
    """Ways from one item to the next, of some users; `half_U` says whose successors are learnt to guess the others'."""

    def __init__(self, user_N: NDArray[np.int32], n_items: int, half_U: NDArray[np.bool_]) -> None:
        self.n_items = n_items
        self.follows_N = user_N[1:] == user_N[:-1]
        self._learnt_N = half_U[user_N[1:]]

    def ways(self, item_N: NDArray[np.int32], which_N: NDArray[np.bool_]) -> NDArray[np.int64]:
        """a · V + b of every event b that follows a."""
        return item_N[:-1][which_N].astype(np.int64) * self.n_items + item_N[1:][which_N]

    def recurring(self, item_N: NDArray[np.int32]) -> int:
        """R: pairs of equal ways."""
        count_W = np.unique(self.ways(item_N, self.follows_N), return_counts=True)[1]
        return int((count_W * (count_W - 1) // 2).sum())

    def guessed(self, item_N: NDArray[np.int32]) -> float:
        """How often b is the commonest successor of a among the learnt half, over the other half's ways."""
        way_W, count_W = np.unique(self.ways(item_N, self.follows_N & self._learnt_N), return_counts=True)
        from_W = way_W // self.n_items
        best = np.lexsort((way_W, -count_W, from_W))
        first = best[np.flatnonzero(np.diff(from_W[best], prepend=-1))]
        wanted = self.ways(item_N, self.follows_N & ~self._learnt_N)
        return float(np.isin(wanted, way_W[first]).mean()) if len(wanted) else 0.0


STRONG = 1.5  # so many times the recurring transitions of shuffled histories are more than a trace of order
NEAR = 10  # neighbouring events that trade places where only near order is shuffled


@dataclass(frozen=True)
class Against:
    """R against shuffles: p = (1 + shuffles with R at least as large) / (1 + shuffles)."""

    expected: float  # mean of R over the shuffles
    z: float  # how many standard deviations of the shuffles the log lies above their mean; 0 where they all agree
    p: float

    @property
    def significant(self) -> bool:
        return self.p <= ALPHA


@dataclass(frozen=True)
class Order:
    """What shuffling does to a log."""

    users: int  # a random part of them, where the log is large
    events: int  # first interactions only
    pairs: int  # of events that follow each other
    shuffles: int
    tied: float | None  # share of the events whose place the clock leaves open; None: no clock, ties cannot be seen
    recurring: int  # R
    as_filed: int | None  # R by the order of the file; None: no ties
    whole: Against  # whole histories shuffled
    near: Against  # only runs of ten neighbouring events shuffled: slow drifts stay
    guessed: float  # share of events that are the commonest successor, among other users, of the one before
    guessed_shuffled: float

    @property
    def ratio(self) -> float:
        """R as a multiple of what shuffled histories have; 1 where neither has any."""
        return self.recurring / self.whole.expected if self.whole.expected else float("inf") if self.recurring else 1.0

    @property
    def strong(self) -> bool:
        return self.ratio >= STRONG


def order(first: Sequences, rng: np.random.Generator, *, shuffles: int = 99) -> Order | None:
    """Shuffle and count; None where no history has two events."""
    part = some_users(first, 250_000, rng)
    user_N, item_N = part.user_N, part.item_N
    place_N = np.arange(len(part)) - np.repeat(part.offset_U1[:-1], part.length_U)
    near_N = np.cumsum(place_N % NEAR == 0)  # runs of neighbouring events of one user, numbered in order
    walk = Walk(user_N, part.n_items, rng.random(part.n_users) < 0.5)
    if not walk.follows_N.any():
        return None
    if (tied := tied_share(part)) is not None:
        item_N = item_N[within(moments(part)[1], rng)]
    recurring = walk.recurring(item_N)
    guesses = [walk.guessed(item_N[within(user_N, rng)]) for _ in range(5)]  # only their mean is needed
    return Order(
        users=int((part.length_U > 0).sum()),
        events=len(part),
        pairs=int(walk.follows_N.sum()),
        shuffles=shuffles,
        tied=tied,
        recurring=recurring,
        as_filed=walk.recurring(part.item_N) if tied else None,
        whole=against(recurring, lambda: walk.recurring(item_N[within(user_N, rng)]), shuffles),
        near=against(recurring, lambda: walk.recurring(item_N[within(near_N, rng)]), shuffles),
        guessed=walk.guessed(item_N),
        guessed_shuffled=float(np.mean(guesses)),
    )


def within(block_N: NDArray[np.int64] | NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int64]:
    """Where each event of a random order comes from; blocks lie end to end and only their insides are shuffled."""
    return np.argsort(block_N + rng.random(len(block_N)) / 2)


def against(observed: int, draw: Callable[[], int], shuffles: int) -> Against:
    """The observed value among those of so many shuffles."""
    drawn = np.array([draw() for _ in range(shuffles)], float)
    deviation = float(drawn.std(ddof=1)) if shuffles > 1 else 0.0
    z = (observed - float(drawn.mean())) / deviation if deviation > 0 else 0.0
    return Against(float(drawn.mean()), z, float((1 + (drawn >= observed).sum()) / (1 + shuffles)))
