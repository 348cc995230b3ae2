"""Where tensors live, with which random numbers, and the freed memory that they leave behind."""

import ctypes
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path

import numpy as np
import torch

from unveil.errors import UnveilError


def pick_device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` takes CUDA, else MPS, else the CPU."""
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if _available(kind)))
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UnveilError("not a device", where="device", found=name, expected="auto, cpu, cuda or mps") from error
    if not _available(device.type):
        raise UnveilError("this device is not available here", where="device", found=name, hint="Try auto or cpu.")
    return device


def _available(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    return kind == "cpu" or (kind == "mps" and torch.backends.mps.is_available())


def seed_epoch(seed: int, epoch: int, rank: int = 0) -> None:
    """Set torch's generators for one epoch: what is drawn in it depends on nothing that came before.

    Each worker of a group draws for its own rows, from a stream of its own; the first one's is that of one process.
    """
    words = [seed, epoch, _DROPOUT, rank] if rank else [seed, epoch, _DROPOUT]
    torch.manual_seed(int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]))


_DROPOUT = 1  # keeps these draws apart from others made from the same seed and epoch


#: Bytes of freed memory that may come together. What is given back has to be had again, a second or two for a gigabyte.
SPARE = 2**30


def resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE
    except OSError:
        return 0


def malloc_trim() -> bool:
    """Give freed memory back to the system, where the allocator is glibc's; whether there was any."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    return trim is not None and bool(trim(0))


@dataclass
class HeapTrim:
    """Trims the heap once `SPARE` bytes have come on top of the least that was held after a step.

    Batches of unequal lengths leave holes between pieces in use, which glibc keeps: gigabytes over hundreds of batches.
    """

    measure: Callable[[], int] = resident
    least: float = math.inf

    def __call__(self) -> None:
        held = self.measure()
        self.least = min(self.least, held)
        if held > self.least + SPARE:
            malloc_trim()
            self.least = math.inf
