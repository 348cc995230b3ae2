"""Fetching public data sets: terms accepted, resumed, checked, unpacked safely, and from then on known by name."""

import json
import os
import sys
import tomllib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path, PurePosixPath

from unveil.data.fetch.archive import USUAL_EXPANSION, unpack
from unveil.data.fetch.download import Part, Retries, Source, Watcher, check_room, digest, download, well_formed
from unveil.errors import UnveilError, unknown
from unveil.files import atomic_folder

MARKER = "fetched.json"


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
        unpacked = source.size * USUAL_EXPANSION if entry.packed else 0
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
            if missing := [log for log in entry.logs if not (draft / log).is_file()]:
                found = ", ".join(sorted(path.name for path in draft.iterdir())) or "nothing"
                raise UnveilError("the log is not in the archive", where=source.url, found=found, expected=missing[0])
            (draft / MARKER).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
        except UnveilError:
            part.discard()
            raise
    part.discard()
