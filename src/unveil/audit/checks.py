"""Cold items and users: what a model has little or nothing to learn from. Shapes: C cases, U users, V items."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.audit.timing import moments
from unveil.data.sequences import Sequences
from unveil.data.splits import SHORTEST, Split

#: An item with fewer events is rare, a user with fewer is short.
FEW = 5


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
    """Count."""
    count_V = sequences.count_V
    count_V = count_V[count_V > 0]
    length_U = sequences.length_U[sequences.length_U > 0]
    return Cold(
        rare_items=float((count_V < FEW).mean()),
        rare_events=float(count_V[count_V < FEW].sum() / count_V.sum()),
        short_users=float((length_U < FEW).mean()),
        unusable_users=float((length_U < SHORTEST).mean()),
        splits={name: _cases(split) for name, split in splits.items() if len(split.test)},
    )


def _cases(split: Split) -> ColdCases:
    trained_C = split.train.count_V[split.test.item_C]
    return ColdCases(
        cases=len(split.test),
        items=float((trained_C == 0).mean()),
        rare=float(((trained_C > 0) & (trained_C < FEW)).mean()),
        users=float((split.train.length_U[split.test.user_C] == 0).mean()),
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
    """The time of the first interaction with each item; the largest integer where there is none."""
    first_V = np.full(n_items, np.iinfo(np.int64).max)
    np.minimum.at(first_V, item_N, time_N)
    return first_V


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
    return Repeats(
        events=count,
        share=count / len(sequences),
        at_once=int(at_once_N.sum()),
        same_moment=_same_moment(sequences),
        targets=None if split is None else _targets(sequences, first, split),
    )


def _same_moment(sequences: Sequences) -> int | None:
    """Copies lie within one moment of one user: only moments of several events are looked at."""
    if sequences.time_N is None:
        return None
    _, moment_N, size = moments(sequences)
    tied_N = size[moment_N] > 1
    pair = moment_N[tied_N] * sequences.n_items + sequences.item_N[tied_N]
    return len(pair) - len(np.unique(pair))


def _targets(sequences: Sequences, first: Sequences, split: Split) -> float:
    """A target is no repeat where it is a first interaction, which is known by its row of the log."""
    if not len(split.test):
        return 0.0
    is_first = np.zeros(int(sequences.event_N.max()) + 1, bool)
    is_first[first.event_N] = True
    at_C = sequences.offset_U1[split.test.user_C] + split.test.seen_C
    return float(1 - is_first[sequences.event_N[at_C]].mean())
