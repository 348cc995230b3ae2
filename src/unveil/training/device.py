"""Devices, seeds of epochs, and trimming of the heap."""

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
    """Seed torch for one epoch. Workers have streams of their own, rank 0 that of a single process."""
    words = [seed, epoch, 1, *([rank] if rank else [])]  # 1: apart from other draws of the same seed and epoch
    torch.manual_seed(int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]))


SPARE = 2**30  # bytes of freed memory that may come together: to get it back takes a second or two per gigabyte


def resident() -> int:
    """Resident bytes of this process; 0 where unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE
    except OSError:
        return 0


def malloc_trim() -> bool:
    """Give freed memory back to the system, if the allocator is glibc's; whether there was any."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    return trim is not None and bool(trim(0))


@dataclass
class HeapTrim:
    """Trims the heap once `SPARE` bytes are held above the least after a step.

    glibc keeps the holes that batches of unequal lengths leave: gigabytes over hundreds of batches.
    """

    measure: Callable[[], int] = resident
    least: float = math.inf

    def __call__(self) -> None:
        held = self.measure()
        self.least = min(self.least, held)
        if held > self.least + SPARE:
            malloc_trim()
            self.least = math.inf
