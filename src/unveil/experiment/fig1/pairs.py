"""Which of two items a user takes first. Shapes: N events, U users."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences


@dataclass(frozen=True)
class Pair:
    """Of the users who took both: how many took `second` later, how many `first`, and how many both at one moment."""

    first: int
    second: int
    later: int
    earlier: int
    together: int
    p: float  # two-sided sign test: later and earlier are equally likely in random order

    @property
    def share(self) -> float | None:
        """Who took `second` later, of those whose order is known."""
        known = self.later + self.earlier
        return self.later / known if known else None


def pair(sequences: Sequences, first: int, second: int) -> Pair:
    """Compare the first time each user took either; the order within one moment is the file's and is not counted."""
    a_U, b_U = _when(sequences, first), _when(sequences, second)
    both_U = (a_U >= 0) & (b_U >= 0)
    together_U = both_U & _same_moment(sequences, a_U, b_U)
    later = int((both_U & ~together_U & (b_U > a_U)).sum())
    earlier = int((both_U & ~together_U & (b_U < a_U)).sum())
    return Pair(first, second, later, earlier, int(together_U.sum()), _sign_test(later, earlier))


def _when(sequences: Sequences, item: int) -> NDArray[np.int64]:
    """The place among all events of each user's first with the item; −1: never."""
    at_M = np.flatnonzero(sequences.item_N == item)[::-1]
    place_U = np.full(sequences.n_users, -1)
    place_U[sequences.user_N[at_M]] = at_M  # the first of a user is written last
    return place_U


def _same_moment(sequences: Sequences, a_U: NDArray[np.int64], b_U: NDArray[np.int64]) -> NDArray[np.bool_]:
    time_N = sequences.time_N
    if time_N is None:
        return np.zeros(len(a_U), bool)
    return np.asarray(time_N[a_U] == time_N[b_U])


def _sign_test(later: int, earlier: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(later, later + earlier).pvalue) if later + earlier else 1.0
