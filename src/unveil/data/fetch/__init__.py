"""Fetching public data sets: terms accepted, resumed, checked, unpacked safely, and from then on known by name."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from unveil.data.fetch.archive import USUAL_EXPANSION, unpack
from unveil.data.fetch.catalogue import CATALOGUE, Dataset
from unveil.data.fetch.download import (
    Part,
    Patience,
    Silent,
    Source,
    Watcher,
    check_room,
    digest,
    download,
    well_formed,
)
from unveil.errors import UnveilError
from unveil.files import atomic_folder


def data_home() -> Path:
    """`UNVEIL_DATA`, or the folder `unveil` in the place this platform keeps a user's data."""
    if chosen := os.environ.get("UNVEIL_DATA"):
        return Path(chosen).expanduser().absolute()
    return _user_data() / "unveil"


def _user_data() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    stated = Path(os.environ.get("XDG_DATA_HOME", ""))
    return stated if stated.is_absolute() else Path.home() / ".local" / "share"


def refuse_repository(place: Path) -> None:
    """Data under licence must not end up in a commit."""
    whole = place.resolve()
    for folder in (whole, *whole.parents):
        if (folder / ".git").exists():
            raise UnveilError(
                f"data are not fetched into a source repository, and {folder} is a git working tree",
                where=place,
                hint="Choose another place with --to DIR or the environment variable UNVEIL_DATA.",
            )


MARKER = "fetched.json"


def catalogue() -> Mapping[str, Dataset]:
    """Every data set that can be fetched, by name."""
    return CATALOGUE


def located(name: str, home: Path | None = None) -> Path | None:
    """The log meant by a data set's name (`ml-1m`), or by `name/file` for another log of the same set.

    None where the name is not in the catalogue; an error that says what to run where it is but has not been fetched.
    """
    known, _, file = name.partition("/")
    if known not in CATALOGUE:
        return None
    path = _folder(CATALOGUE[known], home) / _log(CATALOGUE[known], file)
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
        raise UnveilError(
            "without a known checksum the server's certificate is needed",
            where=entry.name,
            hint="Leave out --skip-certificate, or give the file's --checksum.",
        )
    return source


def fetch(
    entry: Dataset,
    source: Source | None = None,
    *,
    terms_accepted: bool,
    home: Path | None = None,
    force: bool = False,
    watcher: Watcher | None = None,
    patience: Patience | None = None,
) -> Path:
    """Download, check and unpack a data set and give the path of its log; nothing is done where it is there already."""
    source, folder = source or source_of(entry), _folder(entry, home)
    refuse_repository(folder)
    if not force and (path := fetched(entry, home)):
        return path
    _refuse_strangers(folder)
    if not terms_accepted:
        raise UnveilError("the terms of use have not been accepted", where=entry.name, hint=f"Read {entry.terms_url}.")
    part = folder.with_name(f"{entry.name}.part")
    _check_room(entry, source, part)
    download(source, part, watcher or Silent(), patience or Patience())
    _install(entry, source, part, folder)
    return folder / entry.logs[0]


def _folder(entry: Dataset, home: Path | None) -> Path:
    return (home or data_home()).expanduser().absolute() / entry.name


def _log(entry: Dataset, file: str) -> str:
    logs = {PurePosixPath(log).name: log for log in entry.logs}
    if file and file not in logs:
        raise UnveilError("no such log in the data set", where=entry.name, found=file, expected=" or ".join(logs))
    return logs[file] if file else entry.logs[0]


def _refuse_strangers(folder: Path) -> None:
    """Only a folder this package has made is ever replaced."""
    if folder.exists() and not (folder / MARKER).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        hint = "Move it away, or choose another place with --to DIR or UNVEIL_DATA."
        raise UnveilError("something else is there already", where=folder, hint=hint)


def _check_room(entry: Dataset, source: Source, part: Path) -> None:
    if source.size is None:
        return
    place = next(folder for folder in part.parents if folder.is_dir())
    unpacked = source.size * USUAL_EXPANSION if entry.packed else 0
    check_room(place, source.size - Part(part).size + unpacked)


def _install(entry: Dataset, source: Source, part: Path, folder: Path) -> None:
    with atomic_folder(folder, overwrite=True) as draft:
        try:
            if entry.packed:
                unpack(part, draft, top=entry.top)
            _mark(entry, source, part, draft)
            if not entry.packed:
                part.replace(draft / entry.file)
            _require_logs(entry, source, draft)
        except UnveilError:
            Part(part).discard()
            raise
    Part(part).discard()


def _require_logs(entry: Dataset, source: Source, draft: Path) -> None:
    missing = [log for log in entry.logs if not (draft / log).is_file()]
    if missing:
        found = ", ".join(sorted(path.name for path in draft.iterdir() if path.name != MARKER)) or "nothing"
        raise UnveilError("the log is not in the archive", where=source.url, found=found, expected=missing[0])


def _mark(entry: Dataset, source: Source, part: Path, draft: Path) -> None:
    """Leave a note of what this is, whence, and under which terms."""
    note = {
        "name": entry.name,
        "title": entry.title,
        "source": source.url,
        "bytes": part.stat().st_size,
        "checksum": digest(part, "sha256"),
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "terms": entry.terms_url,
        "terms_accepted": True,
        "citation": entry.citation,
    }
    (draft / MARKER).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
