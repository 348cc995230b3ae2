"""First takes: a user's first event with each item, and none of those that follow.

A second event with an item is no second opinion: it comes from the first. Tests that count events as independent count
first takes only. Shapes: N events, U users.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import counted
from unveil.data.sequences import Offsets, Sequences, offsets


def first_takes(sequences: Sequences) -> Sequences:
    """The histories without repeats; every event keeps its step."""
    user_N = sequences.user_N
    pair_N = user_N.astype(np.int64) * sequences.n_items + sequences.item_N
    first = np.sort(np.unique(pair_N, return_index=True)[1])
    return laid_out(sequences, first, offsets(counted(user_N[first], sequences.n_users)))


def laid_out(sequences: Sequences, at_N: NDArray[Any], offset_U1: Offsets) -> Sequences:
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
