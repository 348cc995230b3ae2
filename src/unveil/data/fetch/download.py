"""A download that resumes where it stopped, tries again after failures, and is checked before it counts."""

import hashlib
import http.client
import json
import re
import shutil
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self
from urllib.parse import urlsplit

from unveil.errors import UnveilError
from unveil.files import explained

_DIGITS = {"md5": 32, "sha256": 64}


def well_formed(checksum: str) -> str:
    """`md5:…` or `sha256:…` in lower case; anything else is refused."""
    algorithm, _, digits = checksum.lower().partition(":")
    if algorithm not in _DIGITS or not re.fullmatch(f"[0-9a-f]{{{_DIGITS[algorithm]}}}", digits):
        raise UnveilError("not a checksum", found=checksum, expected="md5:<32 hex digits> or sha256:<64 hex digits>")
    return f"{algorithm}:{digits}"


def digest(path: Path, algorithm: str) -> str:
    """`algorithm:hex` of the file's bytes."""
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


def check(path: Path, url: str, size: int | None, checksum: str | None) -> None:
    """Refuse a file that is not the one expected."""
    if is_web_page(path):
        raise web_page(url)
    found = path.stat().st_size
    if size is not None and found != size:
        raise wrong_size(url, found, size)
    if checksum is not None and (sum_found := digest(path, checksum.partition(":")[0])) != checksum:
        raise UnveilError(
            "the checksum does not match, so the download was deleted",
            where=url,
            found=sum_found,
            expected=checksum,
            hint="Run the command again; if it fails again, the file at the source is another one.",
        )


def is_web_page(path: Path) -> bool:
    """Whether the file begins like HTML."""
    with path.open("rb") as file:
        start = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html"))


def web_page(url: str) -> UnveilError:
    """The error for HTML where data were expected."""
    return UnveilError(
        "the server sent a web page, not the data",
        where=url,
        hint="Open the address in a browser to see what it says, or name another source with --url.",
    )


def wrong_size(url: str, found: int, size: int) -> UnveilError:
    """The error for a file of another length."""
    return UnveilError(
        "not the file that was expected",
        where=url,
        found=f"{found:,} bytes",
        expected=f"{size:,} bytes",
        hint="A mirror that packs the data otherwise needs its own --checksum.",
    )


def check_room(folder: Path, needed: int) -> None:
    """Refuse to start what the disk cannot hold."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UnveilError(
            "not enough room on the disk",
            where=folder,
            found=f"{free:,} bytes free",
            expected=f"{needed:,} bytes",
            hint="Free some space, or choose another place with --to DIR or UNVEIL_DATA.",
        )


if sys.platform != "win32":
    import fcntl


@dataclass(frozen=True)
class Part:
    """A download under way: `path` holds its first bytes, a small JSON beside it the version they belong to."""

    path: Path

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def _note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def remember(self, url: str, headers: Message) -> None:
        """Note which version of the file these bytes are of."""
        self._note.write_text(json.dumps({"url": url, "version": _version(headers)}), encoding="utf-8")

    def version(self, url: str) -> str | None:
        """The validator the server gave for these bytes; None where it gave none or they are from elsewhere."""
        note = self._read_note()
        version = note.get("version")
        return version if note.get("url") == url and isinstance(version, str) else None

    def is_from(self, url: str) -> bool:
        """Whether these bytes came from `url`."""
        return self._read_note().get("url") == url

    def restart(self) -> None:
        """Begin again from nothing."""
        self.path.write_bytes(b"")
        self._note.unlink(missing_ok=True)

    def discard(self) -> None:
        """Leave no trace."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _read_note(self) -> dict[str, object]:
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    @contextmanager
    def sole_use(self) -> Iterator[None]:
        """Refuse a second process that would write into the same file."""
        self.path.touch()
        if sys.platform == "win32":  # pragma: no cover: there, an open file could not be deleted
            yield
            return
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UnveilError("another process is fetching this", where=self.path) from error
            yield


def _version(headers: Message) -> str | None:
    """A strong ETag, else the date: a weak ETag does not promise equal bytes (RFC 9110, 13.1.5)."""
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


RANGE_REFUSED = 416
PARTIAL = 206
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}
_MEANING = {
    401: "the server asks for a password",
    403: "the server refuses access",
    404: "there is no such file on the server",
    410: "the file has been removed from the server",
}
_HAND = "Look at the data set's page (`unveil data fetch --list`), or name another source with --url."


class PassingError(Exception):
    """A failure that may pass by itself; `final` is what to say if it does not."""

    def __init__(self, final: UnveilError) -> None:
        self.final = final
        super().__init__(final.problem)


@dataclass(frozen=True)
class Reply:
    """What the server answered: the status, the headers, and the body still to be read."""

    url: str
    status: int
    headers: Message
    body: IO[bytes]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.body.close()

    def read(self, most: int) -> bytes:
        """The next bytes; empty at the end, which may come too early."""
        try:
            return self.body.read(most)
        except (OSError, http.client.HTTPException) as error:
            raise PassingError(_broken(self.url, error)) from error


def ask(url: str, headers: dict[str, str], *, timeout: float, certificate: bool) -> Reply:
    """Send the request; a refused range (416) is an answer like any other."""
    _refuse_other_schemes(url)
    request = urllib.request.Request(url, headers={"User-Agent": "unveil", "Accept-Encoding": "identity", **headers})
    try:
        answer = urllib.request.urlopen(request, timeout=timeout, context=_tls(certificate))
    except urllib.error.HTTPError as error:
        return _answered(url, error)
    except (OSError, http.client.HTTPException) as error:
        raise _unanswered(url, error) from error
    return Reply(url, answer.status or 200, answer.headers, answer)


def _refuse_other_schemes(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file") or not (parts.netloc or parts.scheme == "file"):
        raise UnveilError("not a source that can be fetched", found=url, expected="an http, https or file URL")


def _tls(certificate: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _answered(url: str, error: urllib.error.HTTPError) -> Reply:
    if error.code == RANGE_REFUSED:
        return Reply(url, error.code, error.headers, error)
    error.close()
    meaning = _MEANING.get(error.code, "the server did not give the file")
    final = UnveilError(meaning, where=url, found=f"HTTP {error.code} {error.reason}", hint=_HAND)
    if error.code in _WORTH_ANOTHER_TRY:
        raise PassingError(final) from error
    raise final from error


def _unanswered(url: str, error: Exception) -> Exception:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return _untrusted(url, reason)
    if isinstance(reason, FileNotFoundError) or urlsplit(url).scheme == "file":
        return UnveilError("cannot read the source", where=url, found=str(reason))
    if isinstance(reason, socket.gaierror):
        final = UnveilError("cannot find the server", where=url, hint="Is this machine on the network?")
        return PassingError(final)
    return PassingError(_broken(url, reason))


def _untrusted(url: str, reason: ssl.SSLCertVerificationError) -> UnveilError:
    return UnveilError(
        "the server's certificate is not valid",
        where=url,
        found=reason.verify_message,
        hint="Try later or name another source with --url. Where the catalogue knows the checksum, "
        "--skip-certificate is safe: the bytes are checked all the same.",
    )


def _broken(url: str, reason: object) -> UnveilError:
    if isinstance(reason, TimeoutError):
        return UnveilError("the server does not answer in time", where=url, hint="Try later, or raise --timeout.")
    if isinstance(reason, ConnectionRefusedError):
        return UnveilError("the server cannot be reached", where=url, found=str(reason), hint=_HAND)
    return UnveilError("the connection broke", where=url, found=str(reason) or type(reason).__name__)


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
