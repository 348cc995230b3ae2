"""A download that survives: it resumes where it stopped, tries again with patience, and is checked before it counts."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unveil.data.fetch.checks import check, check_room, web_page, wrong_size
from unveil.data.fetch.part import Part
from unveil.data.fetch.request import PARTIAL, RANGE_REFUSED, PassingError, Reply, ask
from unveil.errors import UnveilError
from unveil.files import explained

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Source:
    """A file on a server and what is known of it beforehand."""

    url: str
    size: int | None = None
    checksum: str | None = None
    certificate: bool = True


@dataclass(frozen=True)
class Patience:
    """How long to wait for an answer, and how often to try again while nothing more arrives."""

    timeout: float = 30.0
    tries: int = 5
    pause: float = 0.5
    longest_pause: float = 15.0

    def before(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row: doubling, up to a limit."""
        return min(self.pause * 2.0**failures, self.longest_pause)


class Watcher(Protocol):
    """Someone to tell how far the download is."""

    def at(self, done: int, total: int | None) -> None:
        """So many bytes of so many are here."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""


class Silent:
    """A watcher who says nothing."""

    def at(self, done: int, total: int | None) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


def download(source: Source, path: Path, watcher: Watcher, patience: Patience) -> None:
    """Make `path` the whole file, checked. What is there already is continued; what fails the check is deleted."""
    part = Part(path)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.sole_use():
            try:
                _until_whole(source, part, watcher, patience)
            finally:
                if not part.size:
                    part.discard()
            _check(source, part)


def _check(source: Source, part: Part) -> None:
    try:
        check(part.path, source.url, source.size, source.checksum)
    except UnveilError:
        part.discard()
        raise


def _until_whole(source: Source, part: Part, watcher: Watcher, patience: Patience) -> None:
    failures, most = 0, part.size
    for _ in range(20 * patience.tries):
        try:
            _advance(source, part, watcher, patience)
            return
        except PassingError as error:
            failures = 0 if part.size > most else failures + 1
            most = max(most, part.size)
            if failures >= patience.tries:
                raise error.final from error
            watcher.note(f"{error}; trying again in {patience.before(failures):g} s")
            time.sleep(patience.before(failures))
    raise UnveilError("the connection breaks again and again", where=source.url, hint="Try later: what came is kept.")


def _advance(source: Source, part: Part, watcher: Watcher, patience: Patience) -> None:
    """One request: from the last byte to the end, or as far as the connection lasts."""
    start = _resumable(source, part)
    if start == source.size:
        return
    headers = _range(start, part.version(source.url)) if start else {}
    with ask(source.url, headers, timeout=patience.timeout, certificate=source.certificate) as reply:
        if reply.status != RANGE_REFUSED:
            _receive(source, reply, part, watcher)
            return
        if start and _total(reply, start) == start:
            return
    if not start:
        raise UnveilError("the server refuses to send the file", where=source.url, found="HTTP 416")
    part.restart()
    _advance(source, part, watcher, patience)


def _resumable(source: Source, part: Part) -> int:
    """How many of the bytes on disk can be built upon: none that may be of another version of the file."""
    trusted = part.is_from(source.url) and (part.version(source.url) or source.checksum)
    return part.size if trusted and part.size <= (source.size or part.size) else 0


def _range(start: int, version: str | None) -> dict[str, str]:
    return {"Range": f"bytes={start}-"} | ({"If-Range": version} if version else {})


def _receive(source: Source, reply: Reply, part: Part, watcher: Watcher) -> None:
    start = _range_start(reply, part.size)
    total = _total(reply, start)
    _check_offer(source, reply, total)
    check_room(part.path.parent, (total or 0) - start)
    part.remember(source.url, reply.headers)
    with part.path.open("r+b") as file:
        file.truncate(start)
        file.seek(start)
        watcher.at(start, total)
        while chunk := reply.read(_CHUNK):
            file.write(chunk)
            watcher.at(file.tell(), total)
            _refuse_excess(source, file.tell())
    if total is not None and part.size < total:
        found = f"{part.size:,} of {total:,} bytes"
        hint = "What came is kept: run the command again to go on from there."
        raise PassingError(UnveilError("the connection broke before the end", where=source.url, found=found, hint=hint))


def _check_offer(source: Source, reply: Reply, total: int | None) -> None:
    if reply.headers.get_content_type() == "text/html":
        raise web_page(source.url)
    if source.size is not None and total is not None and total != source.size:
        raise wrong_size(source.url, total, source.size)


def _refuse_excess(source: Source, so_far: int) -> None:
    if source.size is not None and so_far > source.size:
        raise wrong_size(source.url, so_far, source.size)


def _range_start(reply: Reply, have: int) -> int:
    """`Content-Range: bytes 100-199/200` begins at 100; a whole answer begins at 0."""
    if reply.status != PARTIAL:
        return 0
    stated = reply.headers.get("Content-Range", "")
    start = _number(stated.removeprefix("bytes").partition("-")[0])
    if start is None or start > have:
        raise UnveilError("the server sent another part of the file than was asked for", where=reply.url, found=stated)
    return start


def _total(reply: Reply, start: int) -> int | None:
    """The length of the whole file, as far as the server says."""
    if stated := reply.headers.get("Content-Range"):
        return _number(stated.rpartition("/")[2])
    length = _number(reply.headers.get("Content-Length", ""))
    return None if length is None else start + length


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None
