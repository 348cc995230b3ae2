"""Users who come back to items, and rows that are there twice. Shapes: C cases, N events."""

from dataclasses import dataclass

import numpy as np

from unveil.audit.timing import moments
from unveil.data.sequences import Sequences
from unveil.data.splits import Split


@dataclass(frozen=True)
class Repeats:
    """Events whose user had taken the item before."""

    events: int
    share: float  # of all events
    at_once: int  # of them, those that follow the same item at once
    same_moment: int | None  # of them, those at the very time of an earlier one: rows written twice; None: no clock
    targets: float | None  # share of leave-one-out test cases whose item the user had before; None: no cases


def repeats(sequences: Sequences, takes: Sequences, split: Split | None) -> Repeats:
    """Count; `takes` are the first takes of the same histories."""
    count = len(sequences) - len(takes)
    user_N, item_N = sequences.user_N, sequences.item_N
    at_once_N = (user_N[1:] == user_N[:-1]) & (item_N[1:] == item_N[:-1])
    return Repeats(
        events=count,
        share=count / len(sequences),
        at_once=int(at_once_N.sum()),
        same_moment=_same_moment(sequences),
        targets=None if split is None else _targets(sequences, takes, split),
    )


def _same_moment(sequences: Sequences) -> int | None:
    """Copies lie within one moment of one user: only moments of several events are looked at."""
    if sequences.time_N is None:
        return None
    _, moment_N, size = moments(sequences)
    tied_N = size[moment_N] > 1
    pair = moment_N[tied_N] * sequences.n_items + sequences.item_N[tied_N]
    return len(pair) - len(np.unique(pair))


def _targets(sequences: Sequences, takes: Sequences, split: Split) -> float:
    """A target is no repeat where it is a first take, which is known by the row it came from."""
    if not len(split.test):
        return 0.0
    is_first = np.zeros(int(sequences.event_N.max()) + 1, bool)
    is_first[takes.event_N] = True
    at_C = sequences.offset_U1[split.test.user_C] + split.test.seen_C
    return float(1 - is_first[sequences.event_N[at_C]].mean())
