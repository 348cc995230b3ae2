"""Which items a user had already met when a case is asked.

Shapes: B cases of a batch, N events, V items.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences

#: Cells (row of the batch, item), as two arrays of the same length.
Cells = tuple[NDArray[np.int64], NDArray[np.int64]]


def seen_cells(sequences: Sequences, user_B: NDArray[Any], seen_B: NDArray[Any]) -> Cells:
    """The items among the first `seen_B` events of each user, however far back they lie; repeats stay repeats."""
    row_N = np.repeat(np.arange(len(user_B)), seen_B)
    nth_N = np.arange(len(row_N)) - np.repeat(np.cumsum(seen_B) - seen_B, seen_B)
    return row_N, sequences.lying.item_N[sequences.first_U[user_B][row_N] + nth_N].astype(np.int64)


def no_cells() -> Cells:
    """Nothing seen, or nothing that matters."""
    return np.zeros(0, np.int64), np.zeros(0, np.int64)
