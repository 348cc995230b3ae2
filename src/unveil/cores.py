"""How many cores a stretch of work may use."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Run with that many threads, and give torch its own number back afterwards.

    One is best where a piece of work takes a fraction of a millisecond: threads that wait for one another, on cores
    that others use too, made such work a hundred times slower.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
