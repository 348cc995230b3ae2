"""Memory that the allocator keeps to itself is given back to the system.

Batches of unequal lengths ask for pieces of unequal sizes. glibc keeps what was freed between pieces that are in use,
and over hundreds of batches of a wide network several gigabytes come together that nobody needs.
"""

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from mmap import PAGESIZE
from pathlib import Path

#: Bytes that may come together. What is given back has to be had again, a second or two for a gigabyte: not too often.
SPARE = 2**30
#: Seconds between two looks.
EVERY = 1.0
_OWN = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    try:
        return int(_OWN.read_text().split()[1]) * PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0


@dataclass
class Tidying:
    """Asked after every step, it gives memory back when more than `SPARE` has come on top of what a step needs."""

    measure: Callable[[], int] = resident
    clock: Callable[[], float] = time.monotonic
    looked: float = field(default=float("-inf"), init=False)
    needed: int | None = field(default=None, init=False)

    def after_step(self) -> bool:
        """Whether it did."""
        now = self.clock()
        if now - self.looked < EVERY:
            return False
        self.looked, held = now, self.measure()
        if self.needed is None or held < self.needed:
            self.needed = held
        if held <= self.needed + SPARE:
            return False
        give_back()
        self.needed = None  # what the next step has touched again
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
