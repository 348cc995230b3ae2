"""Where tensors live, and with which random numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def private_randomness(device: torch.device) -> Iterator[None]:
    """Whatever is drawn from torch's generators inside leaves them outside as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


def seed_epoch(seed: int, epoch: int, rank: int = 0) -> None:
    """Set torch's generators for one epoch: what is drawn in it depends on nothing that came before.

    Each worker of a group draws for its own rows, from a stream of its own; the first one's is that of one process.
    """
    words = [seed, epoch, _DROPOUT, rank] if rank else [seed, epoch, _DROPOUT]
    torch.manual_seed(int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0]))


_DROPOUT = 1  # keeps these draws apart from others made from the same seed and epoch
