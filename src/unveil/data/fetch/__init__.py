"""Fetching public data sets: terms accepted, resumed, checked, unpacked safely, and from then on known by name."""

import errno
import gzip
import json
import os
import stat
import struct
import sys
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import IO

from unveil.data.fetch.download import Part, Retries, Source, Watcher, check_room, digest, download, well_formed
from unveil.data.fetch.recipes import RECIPES
from unveil.errors import UnveilError, unknown
from unveil.files import atomic_folder

MARKER = "fetched.json"
_USUAL_EXPANSION, _MOST_EXPANSION = 5, 20  # the archives of the catalogue open to 3 to 5 times their size
_ALWAYS_ALLOWED = 1 << 20
_MOST_MEMBERS = 1_000
#: What the standard library raises on damaged archives; not all of it on purpose.
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, struct.error)
_DAMAGE_BY_CHANCE = (EOFError, RuntimeError, ValueError, LookupError, OverflowError)
_BAD_NAMES = {errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}


@dataclass(frozen=True)
class Dataset:
    """One published data set. `size` and `checksum` are None where nobody trustworthy has published them."""

    name: str
    title: str
    url: str
    page: str
    terms: str
    terms_url: str
    citation: str
    format: str
    logs: tuple[str, ...]  # inside, relative to the data set's folder; the first is the one meant by the plain name
    top: str = ""  # the single folder in which the archive wraps everything; it is left out when unpacking
    size: int | None = None
    checksum: str | None = None

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    @property
    def packed(self) -> bool:
        return self.file.endswith((".zip", ".tar.gz"))


#: All data sets that can be fetched.
_TEXT = files("unveil.data.fetch").joinpath("catalogue.toml").read_text(encoding="utf-8")
CATALOGUE = {
    name: Dataset(name, **entry | {"logs": tuple(entry["logs"])}) for name, entry in tomllib.loads(_TEXT).items()
}


def dataset(name: str) -> Dataset:
    """The data set of that name; an unknown one is an error with the nearest name."""
    if name not in CATALOGUE:
        raise unknown("data set to fetch", name, CATALOGUE)
    return CATALOGUE[name]


def data_home() -> Path:
    """`UNVEIL_DATA`, or the folder `unveil` in the place this platform keeps a user's data."""
    if chosen := os.environ.get("UNVEIL_DATA"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "unveil"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "unveil"
    stated = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (stated if stated.is_absolute() else Path.home() / ".local" / "share") / "unveil"


def located(name: str, home: Path | None = None) -> Path | None:
    """The log meant by a data set's name (`ml-1m`), or by `name/file` for another of its logs; None if unknown.

    An error says what to run if it has not been fetched.
    """
    known, _, file = name.partition("/")
    if known not in CATALOGUE:
        return None
    entry = CATALOGUE[known]
    logs = {PurePosixPath(log).name: log for log in entry.logs}
    if file and file not in logs:
        raise UnveilError("no such log in the data set", where=known, found=file, expected=" or ".join(logs))
    path = _folder(entry, home) / (logs[file] if file else entry.logs[0])
    if not path.is_file():
        raise UnveilError("the data set has not been fetched", found=name, hint=f"Run `unveil data fetch {known}`.")
    return path


def fetched(entry: Dataset, home: Path | None = None) -> Path | None:
    """The main log of a data set, where it has been fetched."""
    path = _folder(entry, home) / entry.logs[0]
    return path if path.is_file() else None


def source_of(
    entry: Dataset, url: str | None = None, checksum: str | None = None, *, certificate: bool = True
) -> Source:
    """Where to get a data set; a `checksum` of one's own replaces the size and checksum of the catalogue."""
    source = Source(url or entry.url, entry.size, entry.checksum, certificate)
    if checksum is not None:
        source = replace(source, size=None, checksum=well_formed(checksum))
    if not certificate and source.checksum is None:
        problem = "without a known checksum the server's certificate is needed"
        hint = "Leave out --skip-certificate, or give the file's --checksum."
        raise UnveilError(problem, where=entry.name, hint=hint)
    return source


def fetch(
    entry: Dataset,
    source: Source | None = None,
    *,
    terms_accepted: bool,
    home: Path | None = None,
    force: bool = False,
    watcher: Watcher | None = None,
    retries: Retries | None = None,
) -> Path:
    """Download, check and unpack a data set and give the path of its log; nothing is done where it is there already."""
    source, folder = source or source_of(entry), _folder(entry, home)
    check_no_repository(folder)
    if not force and (path := fetched(entry, home)):
        return path
    if folder.exists() and not (folder / MARKER).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        hint = "Move it away, or choose another place with --to DIR or UNVEIL_DATA."
        raise UnveilError("something else is there already", where=folder, hint=hint)
    if not terms_accepted:
        raise UnveilError("the terms of use have not been accepted", where=entry.name, hint=f"Read {entry.terms_url}.")
    part = Part(folder.with_name(f"{entry.name}.part"))
    if source.size is not None:
        unpacked = source.size * _USUAL_EXPANSION if entry.packed else 0
        check_room(next(each for each in part.path.parents if each.is_dir()), source.size - part.size + unpacked)
    download(source, part.path, watcher or Watcher(), retries or Retries())
    _install(entry, source, part, folder)
    return folder / entry.logs[0]


def check_no_repository(place: Path) -> None:
    """Data under licence must not end up in a commit."""
    whole = place.resolve()
    for folder in (whole, *whole.parents):
        if (folder / ".git").exists():
            problem = f"data are not fetched into a source repository, and {folder} is a git working tree"
            hint = "Choose another place with --to DIR or the environment variable UNVEIL_DATA."
            raise UnveilError(problem, where=place, hint=hint)


def _folder(entry: Dataset, home: Path | None) -> Path:
    return (home or data_home()).expanduser().absolute() / entry.name


def _install(entry: Dataset, source: Source, part: Part, folder: Path) -> None:
    with atomic_folder(folder, overwrite=True) as draft:
        try:
            if entry.packed:
                unpack(part.path, draft, top=entry.top)
            note = {
                "name": entry.name,
                "title": entry.title,
                "source": source.url,
                "bytes": part.size,
                "checksum": digest(part.path, "sha256"),
                "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
                "terms": entry.terms_url,
                "terms_accepted": True,
                "citation": entry.citation,
            }
            if not entry.packed:
                part.path.replace(draft / entry.file)
            if entry.name in RECIPES:  # the published files are no logs
                RECIPES[entry.name](draft)
            if missing := [log for log in entry.logs if not (draft / log).is_file()]:
                found = ", ".join(sorted(path.name for path in draft.iterdir())) or "nothing"
                raise UnveilError("the log is not in the archive", where=source.url, found=found, expected=missing[0])
            (draft / MARKER).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
        except UnveilError:
            part.discard()
            raise
    part.discard()


def unpack(archive: Path, folder: Path, *, top: str = "") -> None:
    """Unpack an untrusted zip or tar.gz file into an empty folder, less the folder `top` in it: no links, no bombs."""
    budget = _Budget(archive)
    try:
        with archive.open("rb") as packed:
            for name, plain, content in _members(archive, packed):
                budget.spend(members=1)
                if not plain:
                    raise _unsafe(archive, name, "a link or a device")
                _write(folder.joinpath(*_safe_parts(archive, name, top)), content, budget)
    except (*_DAMAGE, *_DAMAGE_BY_CHANCE) as error:
        problem, hint = "the archive is damaged or of a kind that cannot be read", "Name another source with --url."
        raise UnveilError(problem, where=archive.name, found=str(error), hint=hint) from error
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
        while chunk := content.read(1 << 20):
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
