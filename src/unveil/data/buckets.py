"""Rows put together in batches: rows of like length, batches of like size.

Shapes: R rows of an epoch, B rows of a batch, K batches.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

#: Rows are sorted by length inside shuffled pools of this many batches.
POOL = 50


def at_random(n_rows: int, batch_size: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Batches of `batch_size` rows drawn at random, the last one shorter."""
    row_R = rng.permutation(n_rows)
    for k in rng.permutation(-(-n_rows // batch_size)):
        yield row_R[k * batch_size : (k + 1) * batch_size]


def by_length(length_R: NDArray[Any], batch_size: int, rng: np.random.Generator) -> Iterator[Rows]:
    """As many batches as `at_random` gives, but of rows of like length, which need little padding.

    All batches hold about the same number of events: few long rows or many short ones, `batch_size` on average. With
    the same number of rows in each, a batch of long rows would hold many times the slots of a batch of short ones,
    and steps of such unequal weight learn more slowly.
    """
    row_R = rng.permutation(len(length_R))
    rows = POOL * batch_size
    batches = [
        batch
        for start in range(0, len(row_R), rows)
        for batch in _equal_parts(row_R[start : start + rows], length_R, batch_size)
    ]
    for k in rng.permutation(len(batches)):
        yield batches[k]


def _equal_parts(row_R: Rows, length_R: NDArray[Any], batch_size: int) -> list[Rows]:
    row_R = row_R[np.argsort(length_R[row_R], kind="stable")]
    count = -(-len(row_R) // batch_size)
    events_R = np.cumsum(length_R[row_R])
    inner_K = np.arange(1, count)
    cut_K = np.searchsorted(events_R, events_R[-1] * inner_K / count, side="right")
    # A row longer than a batch's share must leave none of its neighbours empty.
    cut_K = np.maximum.accumulate(np.maximum(cut_K, inner_K) - inner_K) + inner_K
    return np.split(row_R, np.minimum(cut_K, len(row_R) - inner_K[::-1]))
