"""Memory that the allocator keeps to itself is given back to the system.

Batches of unequal lengths ask for pieces of unequal sizes. glibc keeps what was freed between pieces that are in use,
and over hundreds of batches of a wide network several gigabytes come together that nobody needs.
"""

import ctypes
import time
from collections.abc import Callable
from functools import cache

#: Seconds between two times. What is given back has to be asked for again: a tenth of a second or so for a gigabyte.
EVERY = 60.0


class Tidying:
    """Gives memory back now and then: asked after every step, it acts once in a while."""

    def __init__(self, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self.every, self.clock, self.last = every, clock, clock()

    def after_step(self) -> bool:
        """Whether it was time."""
        if self.clock() - self.last < self.every:
            return False
        give_back()
        self.last = self.clock()
        return True


def give_back() -> bool:
    """Whether there was anything to give; an allocator other than glibc's is left to itself."""
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc; TypeError: Windows
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    found: Callable[[int], int] = trim
    return found
