"""The times of all events, looked at a block at a time: their span, the nth of them, and who had how many by when.

Nothing is sorted, so that it does not matter whether the log fits in memory. Shapes: N events, B of a block, U users.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import gathered
from unveil.data.mapped import walked
from unveil.data.sequences import Sequences
from unveil.errors import UnveilError

Times = NDArray[np.int64]

#: Spans of time that are told apart in one pass over the events.
_BINS = 1 << 16


class Timeline:
    """When the events of some histories were, in µs."""

    def __init__(self, sequences: Sequences) -> None:
        if sequences.clock is None or not len(sequences):
            raise UnveilError(
                "a global temporal split needs times, and this log has an order only",
                hint="Use leave-one-out, or a file with a time column.",
            )
        self._sequences, self._time = sequences, sequences.clock

    def __len__(self) -> int:
        return len(self._sequences)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first moment and the last."""
        first, last = zip(*((int(time_B.min()), int(time_B.max())) for time_B in self._times()), strict=True)
        return min(first), max(last)

    def nth(self, n: int) -> int:
        """The time of the nth event in order of time, counted from 0.

        Events are counted in equal spans of time, then in those of the span that the nth falls in, until a span is one
        moment: sixteen bits of a number in each pass, so that four are enough for any.
        """
        low, last = self.span
        size = last - low + 1
        while size > 1:
            width = -(-size // _BINS)
            count = sum((_binned(time_B, low, size, width) for time_B in self._times()), np.zeros(_BINS, np.int64))
            upto = np.cumsum(count)
            at = int(np.searchsorted(upto, n, side="right"))
            low, n, size = low + at * width, n - int(upto[at] - count[at]), width
        return low

    def before(self, *moments: int) -> list[NDArray[np.int64]]:
        """How many events of each user came before each of these moments."""
        found: list[list[NDArray[np.int64]]] = [[] for _ in moments]
        for part in self._sequences.blocks():
            time_B, user_B = _far(self._time, part.event_N), part.user_N
            for each, moment in zip(found, moments, strict=True):
                each.append(np.bincount(user_B[time_B < moment], minlength=part.n_users))
        return [np.concatenate(each) for each in found]

    def _times(self) -> Iterator[Times]:
        """All times, in any order: as the log has them, where all of its rows are events of these histories."""
        if len(self._time) == len(self):
            return walked(self._time)
        return (_far(self._time, part.event_N) for part in self._sequences.blocks() if len(part))


def _binned(time_B: Times, low: int, size: int, width: int) -> NDArray[np.int64]:
    """How many of the times from `low` on, within `size`, lie in each span of this width."""
    # Differences of 64-bit numbers may need all 64 bits; wrapped around, as these are, they are right.
    since_B = time_B.astype(np.uint64) - np.uint64(low % (1 << 64))
    since_B = since_B[since_B <= np.uint64(size - 1)]
    return np.bincount((since_B // np.uint64(width)).astype(np.int64), minlength=_BINS)


def _far(values: Times, row_B: NDArray[np.int32]) -> Times:
    """The values at rows that lie all over a column: in the order of the column, so that few pages are held at once."""
    order_B = np.argsort(row_B)
    value_B = np.empty(len(row_B), values.dtype)
    value_B[order_B] = gathered(values, row_B[order_B])
    return value_B
