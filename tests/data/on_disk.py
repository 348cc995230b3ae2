"""Histories that lie on the disk, and how much memory Python and NumPy take for some work on them."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Sequences
from unveil.data.mapped import column_file, mapped


def on_disk(sequences: Sequences, folder: Path) -> Sequences:
    """The same histories with their columns in files."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = (_file(getattr(sequences, name), folder / f"{name}.npy") for name in ("item_N", "step_N", "event_N"))
    clock = None if sequences.clock is None else _file(sequences.clock, folder / "clock.npy")
    item_N, step_N, event_N = columns
    return Sequences(item_N, step_N, event_N, clock, sequences.offset_U1, sequences.n_items, sequences.n_steps)


def many_events(users: int = 2000, each: int = 200, items: int = 50) -> Sequences:
    """Histories of one length in rows that lie all over the log, with times in order."""
    rng, size = np.random.default_rng(0), users * each
    time_U = np.sort(rng.integers(0, 10**15, (users, each)), axis=1)
    event_N = rng.permutation(size).astype(np.int32)
    clock = np.empty(size, np.int64)
    clock[event_N] = time_U.ravel()
    step_N = np.tile(np.arange(each, dtype=np.int32), users)
    item_N = rng.integers(0, items, size).astype(np.int32)
    return Sequences(item_N, step_N, event_N, clock, np.arange(users + 1) * each, n_items=items, n_steps=each)


def peak_of(work: Callable[[], object]) -> int:
    """The most bytes that were held beyond those held before; pages of mapped files do not count."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _file(column: NDArray[Any], path: Path) -> NDArray[Any]:
    with column_file(path, column.dtype, len(column)) as append:
        append(column)
    return mapped(path)
