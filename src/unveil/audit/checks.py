"""What is counted: popularity, cold items and users, leakage, repeats. Shapes: C cases, N events, U users, V items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.audit.timing import moments
from unveil.data.describe import gini, head, lorenz
from unveil.data.interactions import Sequences
from unveil.data.splits import SHORTEST, Split

POINTS = 101  # points of the Lorenz curve, both ends included
FEW = 5  # an item with fewer events is rare, a user with fewer is short
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Concentration:
    """The Lorenz curve of popularity and what follows from it; items without interactions are not counted."""

    gini: float  # 0: all items alike; 1: one item has everything
    head: dict[str, float]  # share of the items, most popular first → share of the events
    half: int  # the fewest items that hold half of the events
    half_share: float  # of all items
    lorenz: tuple[float, ...]  # share of the events on the least popular 0%, 1%, … 100% of the items


def concentration(count_V: NDArray[Any]) -> Concentration:
    """Read everything off the counts."""
    falling_V = np.sort(count_V[count_V > 0])[::-1]
    half = int(np.searchsorted(np.cumsum(falling_V), falling_V.sum() / 2) + 1)
    return Concentration(
        gini=gini(falling_V),
        head={f"{share:.0%}": head(count_V, share) for share in (0.01, 0.1, 0.2)},
        half=half,
        half_share=half / len(falling_V),
        lorenz=tuple(lorenz(falling_V, np.linspace(0, 1, POINTS)).tolist()),
    )


@dataclass(frozen=True)
class ColdCases:
    """Of the test cases of one split."""

    cases: int
    items: float  # share whose item never occurs in training
    rare: float  # share whose item occurs there, but less than five times
    users: float  # share whose user has no training events


@dataclass(frozen=True)
class Cold:
    """Of the whole log, and of the test cases of each split."""

    rare_items: float  # share of the items with fewer than five events
    rare_events: float  # share of the events that fall on them
    short_users: float  # share of the users with fewer than five events
    unusable_users: float  # share of the users with fewer than three: nothing of theirs can be held out
    splits: dict[str, ColdCases]


def cold(sequences: Sequences, splits: dict[str, Split]) -> Cold:
    """What a model has little or nothing to learn from."""
    count_V, length_U = sequences.count_V, sequences.length_U
    count_V, length_U = count_V[count_V > 0], length_U[length_U > 0]
    cases = {}
    for name, split in splits.items():
        if len(split.test):
            trained_C = split.train.count_V[split.test.item_C]
            rare_C = (trained_C > 0) & (trained_C < FEW)
            new_C = split.train.length_U[split.test.user_C] == 0
            shares = (float(which_C.mean()) for which_C in (trained_C == 0, rare_C, new_C))
            cases[name] = ColdCases(len(split.test), *shares)
    return Cold(
        rare_items=float((count_V < FEW).mean()),
        rare_events=float(count_V[count_V < FEW].sum() / count_V.sum()),
        short_users=float((length_U < FEW).mean()),
        unusable_users=float((length_U < SHORTEST).mean()),
        splits=cases,
    )


@dataclass(frozen=True)
class Leakage:
    """Of the test cases of leave-one-out."""

    cases: int
    leaking: float  # share of the cases whose training set holds events later than they
    later: float  # share of the training events that are later than the case, mean over cases
    unborn: float  # share of the cases whose item is in training only with events later than the case


def leakage(split: Split) -> Leakage | None:
    """Compare the cases' times with those of the training events; None where the log has no clock."""
    time_N, trained_N, test = split.whole.time_N, split.train.time_N, split.test
    if time_N is None or trained_N is None or not len(test):
        return None
    time_C = time_N[split.whole.offset_U1[test.user_C] + test.seen_C]
    later_C = 1 - np.searchsorted(np.sort(trained_N), time_C, side="right") / max(len(trained_N), 1)
    first_V = np.full(split.train.n_items, _NEVER)
    np.minimum.at(first_V, split.train.item_N, trained_N)
    first_C = first_V[test.item_C]
    unborn_C = (first_C > time_C) & (first_C < _NEVER)
    return Leakage(len(test), float((later_C > 0).mean()), float(later_C.mean()), float(unborn_C.mean()))


@dataclass(frozen=True)
class Repeats:
    """Interactions with an item that the user had before."""

    events: int
    share: float  # of all events
    at_once: int  # of them, those that follow the same item at once
    same_moment: int | None  # of them, those at the very time of an earlier one: rows written twice; None: no clock
    targets: float | None  # share of leave-one-out test cases whose item the user had before; None: no cases


def repeats(sequences: Sequences, first: Sequences, split: Split | None) -> Repeats:
    """Count; `first` are the first interactions of the same histories with each item."""
    count = len(sequences) - len(first)
    user_N, item_N = sequences.user_N, sequences.item_N
    at_once_N = (user_N[1:] == user_N[:-1]) & (item_N[1:] == item_N[:-1])
    same_moment = None
    if sequences.time_N is not None:  # copies lie within one moment of one user
        _, moment_N, size = moments(sequences)
        tied_N = size[moment_N] > 1
        pair = moment_N[tied_N] * sequences.n_items + item_N[tied_N]
        same_moment = len(pair) - len(np.unique(pair))
    targets = None if split is None else 0.0
    if split is not None and len(split.test):  # no repeat: a first interaction, which is known by its row of the log
        is_first = np.zeros(int(sequences.event_N.max()) + 1, bool)
        is_first[first.event_N] = True
        at_C = sequences.offset_U1[split.test.user_C] + split.test.seen_C
        targets = float(1 - is_first[sequences.event_N[at_C]].mean())
    return Repeats(count, count / len(sequences), int(at_once_N.sum()), same_moment, targets)
