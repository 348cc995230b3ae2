"""One yes or no for each of very many events, eight to the byte. Shapes: N events, B of a block, M some of them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.mapped import blocks


class Bits:
    """N truths, all of them False at first."""

    def __init__(self, size: int) -> None:
        self._size, self._bytes = size, np.zeros(-(-size // 8), np.uint8)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        bit: NDArray[np.uint8] = (self._bytes[at >> 3] >> (7 - (at & 7)).astype(np.uint8)) & np.uint8(1)
        return bit.view(np.bool_)

    def change(self, span: slice, work: Callable[[NDArray[np.bool_]], object]) -> None:
        """Let `work` change the truths of a span of events, given as an array."""
        first, last = span.start // 8, -(-span.stop // 8)
        flags = np.unpackbits(self._bytes[first:last]).view(np.bool_)
        work(flags[span.start - 8 * first : span.stop - 8 * first])
        self._bytes[first:last] = np.packbits(flags)

    def fill(self, truths: Callable[[int], NDArray[np.bool_]]) -> None:
        """Set all truths, block by block; `truths(n)` gives the next n."""
        for span in blocks(self._size):
            self._bytes[span.start // 8 : -(-span.stop // 8)] = np.packbits(truths(span.stop - span.start))

    def clear(self, at_M: NDArray[np.integer[Any]]) -> None:
        """Set the truths at these places, which are in order, to False."""
        for span in blocks(self._size):
            first, last = np.searchsorted(at_M, [span.start, span.stop])
            inside_M = at_M[first:last] - span.start
            if len(inside_M):
                self.change(span, partial(_clear, inside_M))

    def __iter__(self) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """The events of a block, and their truths, block by block."""
        for span in blocks(self._size):
            packed = self._bytes[span.start // 8 : -(-span.stop // 8)]
            yield span, np.unpackbits(packed, count=span.stop - span.start).view(np.bool_)

    def count(self) -> int:
        """How many are True."""
        return sum(int(flag_B.sum()) for _, flag_B in self)


def _clear(at_M: NDArray[np.integer[Any]], flag_B: NDArray[np.bool_]) -> None:
    flag_B[at_M] = False
