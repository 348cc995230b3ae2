"""Unpacking an archive one does not trust: nothing outside the folder, no links, no bombs."""

import errno
import gzip
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from unveil.errors import UnveilError

# The archives of the catalogue open to 3 to 5 times their size.
USUAL_EXPANSION = 5
_MOST_EXPANSION = 20
_ALWAYS_ALLOWED = 1 << 20
_MOST_MEMBERS = 1_000
_CHUNK = 1 << 20
#: What the standard library raises on damaged archives; not all of it on purpose.
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, struct.error)
_DAMAGE_BY_CHANCE = (EOFError, RuntimeError, ValueError, LookupError, OverflowError)
_BAD_NAMES = {errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}


def unpack(archive: Path, folder: Path, *, top: str = "") -> None:
    """Unpack a zip or tar.gz file into the empty `folder`, leaving out the wrapping folder `top`."""
    budget = _Budget(archive)
    try:
        with archive.open("rb") as packed:
            for name, plain, content in _members(archive, packed):
                budget.spend(members=1)
                if not plain:
                    raise _unsafe(archive, name, "a link or a device")
                _write(folder.joinpath(*_safe_parts(archive, name, top)), content, budget)
    except (*_DAMAGE, *_DAMAGE_BY_CHANCE) as error:
        problem = "the archive is damaged or of a kind that cannot be read"
        raise UnveilError(problem, where=archive.name, found=str(error)) from error
    except OSError as error:
        if error.errno not in _BAD_NAMES:
            raise
        raise _unsafe(archive, str(error.filename), "names that clash or that this disk cannot hold") from error


def _write(target: Path, content: IO[bytes] | None, budget: "_Budget") -> None:
    if content is None:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("xb") as file:
        while chunk := content.read(_CHUNK):
            budget.spend(len(chunk))
            file.write(chunk)


class _Budget:
    """How much an archive may still unfold: by bytes truly written, whatever its headers say."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.bytes = max(archive.stat().st_size * _MOST_EXPANSION, _ALWAYS_ALLOWED)
        self.members = _MOST_MEMBERS

    def spend(self, n_bytes: int = 0, members: int = 0) -> None:
        self.bytes -= n_bytes
        self.members -= members
        if self.bytes < 0 or self.members < 0:
            limit = f"at most {_MOST_EXPANSION} times its size and {_MOST_MEMBERS:,} files"
            raise UnveilError("the archive unfolds to an absurd size", where=self.archive.name, expected=limit)


class _BoundedGzip(gzip.GzipFile):
    """Stops an archive whose very headers are a bomb."""

    def __init__(self, packed: IO[bytes], budget: "_Budget") -> None:
        super().__init__(fileobj=packed)
        self._budget = budget

    def read(self, size: int | None = -1) -> bytes:
        most = self._budget.bytes + 1
        chunk = super().read(most if size is None or size < 0 else min(size, most))
        self._budget.spend(len(chunk))
        return chunk


def _members(archive: Path, packed: IO[bytes]) -> Iterator[tuple[str, bool, IO[bytes] | None]]:
    """Each member's name, whether it is a file or a folder, and its content; folders have none."""
    start = packed.read(4)
    packed.seek(0)
    if start == b"PK\x03\x04":
        with zipfile.ZipFile(packed) as zipped:
            for entry in zipped.infolist():
                plain = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
                yield entry.filename, plain, zipped.open(entry) if plain and not entry.is_dir() else None
    elif start.startswith(b"\x1f\x8b"):
        with _BoundedGzip(packed, _Budget(archive)) as unzipped, tarfile.open(fileobj=unzipped, mode="r|") as tarred:
            for member in tarred:
                content = tarred.extractfile(member) if member.isreg() else None
                yield member.name, member.isreg() or member.isdir(), content
    else:
        found = f"{start!r} at its start"
        raise UnveilError("not an archive", where=archive.name, found=found, expected="zip or tar.gz")


def _safe_parts(archive: Path, name: str, top: str) -> tuple[str, ...]:
    """The member's path below the folder; a name that could lead elsewhere is an error."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or any(bad in name for bad in ("\\", ":", "\0")):
        raise _unsafe(archive, name, "a path that leads out of the folder")
    return parts[1:] if top and parts[0] == top else parts


def _unsafe(archive: Path, member: str, what: str) -> UnveilError:
    hint = "Nothing was unpacked. Do not use this source."
    return UnveilError(f"the archive is not safe to unpack: {what}", where=archive.name, found=member, hint=hint)
