"""Columns on the disk: flat .npy files, written in blocks, read as arrays whose pages the system loads when touched."""

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Rows handled at once wherever a column is gone through from end to end; a multiple of eight, for those with bits.
BLOCK = 1 << 20


@contextmanager
def column_file(path: Path, kind: DTypeLike, size: int) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Give a function that appends a block; the blocks must come to `size` values in all.

    Written, not mapped: a full disk is then an error that can be told, where a mapped page would end the process.
    """
    dtype, written = np.dtype(kind), 0
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (size,)}

    def append(block: NDArray[Any]) -> None:
        nonlocal written
        file.write(np.ascontiguousarray(block, dtype).data)
        written += len(block)

    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        yield append
    if written != size:
        raise ValueError(f"{path} was to hold {size} values and was given {written}")


def mapped(path: Path) -> NDArray[Any]:
    """The column of a file, read-only; nothing is loaded yet."""
    column = np.load(path, mmap_mode="r", allow_pickle=False)
    assert isinstance(column, np.memmap)
    return column


def blocks(size: int) -> Iterator[slice]:
    """Slices that go through `size` rows from end to end."""
    return (slice(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))


def release(*columns: NDArray[Any] | None) -> None:
    """Let go of the pages of mapped columns; they are read again, mostly from the system's cache, when touched.

    Without it, a process that goes through a column ends up holding all of it. Columns in memory are left alone.
    """
    for column in columns:
        base: object = column
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)
