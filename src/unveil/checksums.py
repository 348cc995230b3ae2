"""Checksums: what is read is what was written, or an error names the file that is not.

A JSON file carries a hash of its own content (`sealed`), a safetensors file one of its arrays, and the JSON file of a
folder one of each other file. Each is checked where it is read. Files of earlier versions have none: they are read.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEAL, DIGEST = "seal", "digest"
CHUNK = 1 << 22
_AGAIN = "Restore it from a copy, or make it anew."


def changed(path: Path, hint: str = _AGAIN) -> UnveilError:
    """The error for a file whose checksum does not match."""
    return UnveilError("not as it was written: changed or damaged", where=path, hint=hint)


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a JSON file with a hash of itself."""
    return {**content, SEAL: content_hash(content)}


def check_seal(content: Mapping[str, Any], path: Path, hint: str = _AGAIN) -> None:
    """Check what was read of a JSON file; whether it is an object is for the reader to say."""
    if SEAL in content and content[SEAL] != content_hash({name: content[name] for name in content if name != SEAL}):
        raise changed(path, hint)


def content_hash(content: Mapping[str, Any]) -> str:
    """A hash of what JSON makes of it: a tuple is a list, a number as a name is text."""
    return sha256(json.dumps(json.loads(json.dumps(content)), sort_keys=True).encode()).hexdigest()


def crc32(path: Path) -> str:
    """A checksum of large files against damage: three times as fast as a hash."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            value = zlib.crc32(chunk, value)
    return f"crc32:{value:08x}"


def check_file(path: Path, expected: str, hint: str = _AGAIN) -> None:
    """Check a file by its CRC-32, once as long as it stays as it is, or by its SHA-256."""
    if expected.startswith("crc32:"):
        state = path.stat()
        found = _known(path.resolve(), state.st_size, state.st_mtime_ns, state.st_ino)
    else:
        with path.open("rb") as file:
            found = file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise changed(path, hint)


@lru_cache(1024)
def _known(path: Path, *state: int) -> str:
    return crc32(path)


def digest(arrays: Mapping[str, "NDArray[Any]"], text: str = "") -> str:
    """A hash of named arrays, in the order of their names, and of a text."""
    found = sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"{name} torch.{array.dtype} {tuple(array.shape)}".encode())
        for part in _parts(array):
            found.update(part.tobytes())
    return found.hexdigest()


def _parts(array: "NDArray[Any]") -> Iterable["NDArray[Any]"]:
    """An array of any size without holding a copy of it."""
    flat = array.reshape(-1)
    return (flat[start : start + CHUNK] for start in range(0, len(flat), CHUNK))


def header(arrays: Mapping[str, "NDArray[Any]"], about: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a safetensors file: one entry, because several have no order, and the same should be the same."""
    return {"about": json.dumps({**about, DIGEST: digest(arrays, json.dumps(about))})}


def read_arrays(path: Path, hint: str = _AGAIN) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays and what is said about them in a safetensors file with such metadata."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    about = dict(json.loads(metadata["about"]))
    if DIGEST in about and about.pop(DIGEST) != digest(arrays, json.dumps(about)):
        raise changed(path, hint)
    return arrays, about
