"""Arrays too large to hold: columns on the disk that are written and read in blocks, flags of a bit each."""

import json
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from unveil.files import atomic_file, explained

#: Rows handled at once wherever a column is gone through from end to end.
BLOCK = 1 << 20
HELD = 1 << 26  # Numbers of a result that are held in memory; a result of more is kept on the disk


@contextmanager
def column_file(path: Path, kind: DTypeLike, size: int) -> Iterator[Callable[[NDArray[Any]], None]]:
    """Give a function that appends a block; the blocks must come to `size` values in all.

    Not mapped: a full disk would end the process, where a failed write is an error.
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
    return np.lib.format.open_memmap(path, mode="r")


def blocks(size: int) -> Iterator[slice]:
    """Slices that go through `size` rows from end to end."""
    return (slice(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK))


def flags(parts: Iterable[NDArray[np.bool_]]) -> pl.Series:
    """One flag for each of very many rows, which come in blocks: a bit each, as polars holds them."""
    return pl.concat(map(pl.Series, parts), rechunk=True)


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
    """Let go of the pages of mapped columns, all of which a process would hold in the end; others are left alone."""
    for column in columns:
        base: object = column
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


#: What safetensors calls kinds of numbers; the widest are written first, so that all are aligned.
_KINDS = {"int64": "I64", "float64": "F64", "float32": "F32", "int32": "I32"}


@dataclass(frozen=True)
class Streamed:
    """An array that comes in parts, some rows at a time from the first to the last."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]
    parts: Callable[[], Iterable[NDArray[Any]]]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Self:
        return cls(array.dtype, array.shape, lambda: walked(array))

    @property
    def size(self) -> int:
        return self.kind.itemsize * prod(self.shape)


def write_arrays(path: Path, arrays: Mapping[str, Streamed], about: Mapping[str, str] | None = None) -> str:
    """Write a safetensors file whole or not at all, and give its hash (SHA-256)."""
    order = sorted(arrays, key=lambda name: (list(_KINDS).index(arrays[name].kind.name), name))
    digest = sha256()
    with atomic_file(path) as draft, draft.open("wb") as file:
        for block in _file({name: arrays[name] for name in order}, about):
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def _file(arrays: Mapping[str, Streamed], about: Mapping[str, str] | None) -> Iterator[bytes | memoryview]:
    entries: dict[str, object] = {"__metadata__": dict(about)} if about else {}
    stop = 0
    for name, array in arrays.items():
        start, stop = stop, stop + array.size
        entries[name] = {"dtype": _KINDS[array.kind.name], "shape": array.shape, "data_offsets": [start, stop]}
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header = header.ljust(-(-len(header) // 8) * 8)  # so that the numbers behind it are aligned
    yield len(header).to_bytes(8, "little") + header
    for name, array in arrays.items():
        written = 0
        for part in array.parts():
            block = np.ascontiguousarray(part, array.kind.newbyteorder("<"))
            written += block.nbytes
            yield block.reshape(-1).view(np.uint8).data
        if written != array.size:
            raise ValueError(f"{name} was to have {array.size} bytes and was given {written}")
