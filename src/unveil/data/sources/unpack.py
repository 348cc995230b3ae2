"""Unpacking .gz and .zst, told by their first bytes and not by their names."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import zstandard

from unveil.errors import UnveilError

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


def is_packed(start: bytes) -> bool:
    """Whether a file that starts so is packed."""
    return start.startswith((_GZIP, _ZSTD))


def unpacked(path: Path) -> bytes:
    """The whole content; a file that is cut off or damaged is an error, never a shorter log."""
    packed = path.read_bytes()
    unpack: Callable[[bytes], bytes] = gzip.decompress if packed.startswith(_GZIP) else _from_zstd
    try:
        return unpack(packed)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError, MemoryError) as error:
        raise UnveilError(
            "the packed file is cut off or damaged",
            where=path,
            found=str(error) or type(error).__name__,
            hint="Copy or download it again.",
        ) from None


def _from_zstd(packed: bytes) -> bytes:
    """All frames, one after another; the library does not itself object to a last frame that is cut off."""
    parts = []
    while packed:
        frame = zstandard.ZstdDecompressor().decompressobj()
        parts.append(frame.decompress(packed))
        if not frame.eof:
            raise EOFError("the last frame has no end")
        packed = frame.unused_data
    return b"".join(parts)
