"""Columns on the disk: flat .npy files, written in blocks, read as arrays whose pages the system loads when touched."""

import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unveil.files import explained

#: Rows handled at once wherever a column is gone through from end to end; a multiple of eight, for those with bits.
BLOCK = 1 << 20
#: Numbers of a result that are held in memory; a result of more is kept on the disk.
HELD = 1 << 26


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


def walked(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """An array from end to end, some rows at a time; of one on the disk no more is held than these."""
    step = max(1, BLOCK // max(1, prod(array.shape[1:])))
    for start in range(0, len(array), step):
        yield array[start : start + step]
        release(array)


def kept(parts: Iterable[NDArray[Any]], shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Rows that come in parts as one array: in memory, or in a file that is gone when nobody needs it any more."""
    if prod(shape) <= HELD:
        array, at = np.empty(shape, kind), 0
        for part in parts:
            array[at : at + len(part)] = part
            at += len(part)
        return array
    with explained(Path(gettempdir())), TemporaryFile() as file:
        for part in parts:
            file.write(np.ascontiguousarray(part, kind).data)
        file.flush()
        return np.memmap(file, kind, "r", shape=shape)


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
