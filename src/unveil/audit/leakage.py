"""Does leave-one-out learn from the future? What a global split in time never does. Shapes: C cases, N events, V items.

Under leave-one-out each user's last event is the test case, and everybody's earlier events are for training, whenever
they happened. A model is then asked about a moment after it has seen what came later.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.data.splits import Split


@dataclass(frozen=True)
class Leakage:
    """Of the test cases of leave-one-out."""

    cases: int
    leaking: float  # share of the cases whose training set holds events later than they
    later: float  # share of the training events that are later than the case, mean over cases
    unborn: float  # share of the cases whose item is in training only with events later than the case


def leakage(split: Split) -> Leakage | None:
    """Compare the cases' times with those of the training events; None where the log has no clock."""
    time_N = split.whole.time_N
    trained_N = split.train.time_N
    if time_N is None or trained_N is None or not len(split.test):
        return None
    time_C = time_N[split.whole.offset_U1[split.test.user_C] + split.test.seen_C]
    later_C = 1 - np.searchsorted(np.sort(trained_N), time_C, side="right") / max(len(trained_N), 1)
    first_V = _first(split.train.item_N, trained_N, split.train.n_items)
    never = np.iinfo(np.int64).max
    first_C = first_V[split.test.item_C]
    return Leakage(
        cases=len(split.test),
        leaking=float((later_C > 0).mean()),
        later=float(later_C.mean()),
        unborn=float(((first_C > time_C) & (first_C < never)).mean()),
    )


def _first(item_N: NDArray[np.int32], time_N: NDArray[np.int64], n_items: int) -> NDArray[np.int64]:
    """When each item is first taken; the end of time where it never is."""
    first_V = np.full(n_items, np.iinfo(np.int64).max)
    np.minimum.at(first_V, item_N, time_N)
    return first_V
