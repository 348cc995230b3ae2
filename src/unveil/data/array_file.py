"""Arrays in a safetensors file, written a block at a time: the bytes that `safetensors` gives, never held together."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unveil.data.mapped import walked
from unveil.files import atomic_file

#: The format's names of the kinds of numbers that are written here, in its order: the widest first, so that all are
#: aligned.
_KINDS = {"int64": "I64", "float64": "F64", "float32": "F32", "int32": "I32"}
#: The header is filled up with blanks to a multiple of this.
_ALIGNED = 8


@dataclass(frozen=True)
class Streamed:
    """An array that comes in parts, some rows at a time from the first to the last."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]
    parts: Callable[[], Iterable[NDArray[Any]]]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Self:
        """One that is there already, in memory or on the disk."""
        return cls(array.dtype, array.shape, lambda: walked(array))

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.kind.itemsize * prod(self.shape)


def write_arrays(path: Path, arrays: Mapping[str, Streamed], about: Mapping[str, str] | None = None) -> str:
    """Write a file whole or not at all, and give its hash (SHA-256)."""
    order = sorted(arrays, key=lambda name: (list(_KINDS).index(arrays[name].kind.name), name))
    digest = sha256()
    with atomic_file(path) as draft, draft.open("wb") as file:
        for block in _file({name: arrays[name] for name in order}, about):
            digest.update(block)
            file.write(block)
    return digest.hexdigest()


def _file(arrays: Mapping[str, Streamed], about: Mapping[str, str] | None) -> Iterator[bytes | memoryview]:
    header = _header(arrays, about)
    yield len(header).to_bytes(8, "little") + header
    for name, array in arrays.items():
        written = 0
        for part in array.parts():
            block = np.ascontiguousarray(part, array.kind.newbyteorder("<"))
            written += block.nbytes
            yield block.reshape(-1).view(np.uint8).data
        if written != array.size:
            raise ValueError(f"{name} was to have {array.size} bytes and was given {written}")


def _header(arrays: Mapping[str, Streamed], about: Mapping[str, str] | None) -> bytes:
    entries: dict[str, object] = {"__metadata__": dict(about)} if about else {}
    start = 0
    for name, array in arrays.items():
        stop = start + array.size
        entries[name] = {"dtype": _KINDS[array.kind.name], "shape": array.shape, "data_offsets": [start, stop]}
        start = stop
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    return header.ljust(-(-len(header) // _ALIGNED) * _ALIGNED)
