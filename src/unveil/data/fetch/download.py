"""A download that resumes where it stopped, tries again after failures, and is checked before it counts."""

import hashlib
import http.client
import json
import re
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unveil.errors import UnveilError
from unveil.files import alone_in, explained

_DIGITS = {"md5": 32, "sha256": 64}
_PARTIAL, _RANGE_REFUSED = 206, 416
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}
_MEANING = {
    401: "the server asks for a password",
    403: "the server refuses access",
    404: "there is no such file on the server",
    410: "the file has been removed from the server",
}
_OTHER_SOURCE = "Look at the data set's page (`unveil data fetch --list`), or name another source with --url."
_OTHER_CERTIFICATE = (
    "Try later or name another source with --url. Where the catalogue knows the checksum, --skip-certificate is safe: "
    "the bytes are checked all the same."
)


@dataclass(frozen=True)
class Source:
    """A file on a server and what is known of it beforehand."""

    url: str
    size: int | None = None
    checksum: str | None = None
    certificate: bool = True


@dataclass(frozen=True)
class Retries:
    """Seconds to wait for an answer, and how often to try again while nothing more arrives."""

    timeout: float = 30.0
    tries: int = 5
    pause: float = 0.5
    longest_pause: float = 15.0


@dataclass(frozen=True)
class Watcher:
    """Is given the bytes that are here, and how many there are in all; and a line on each failure."""

    at: Callable[[int, int | None], None] = lambda done, total: None
    note: Callable[[str], None] = lambda text: None


class TemporaryError(UnveilError):
    """A failure that may pass by itself."""


@dataclass(frozen=True)
class Part:
    """A download under way: `path` holds its first bytes, a small JSON beside it their address and version."""

    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def note(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def origin(self) -> tuple[object, str | None]:
        """The address of these bytes, and the validator that the server gave for them."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            return note["url"], note["version"] if isinstance(note["version"], str) else None
        except (OSError, ValueError, LookupError, TypeError):
            return None, None

    def remember(self, url: str, headers: Message) -> None:
        """A strong ETag, else the date: a weak ETag does not promise equal bytes (RFC 9110, 13.1.5)."""
        etag = headers.get("ETag")
        version = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")
        self.note.write_text(json.dumps({"url": url, "version": version}), encoding="utf-8")

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def download(source: Source, path: Path, watcher: Watcher, retries: Retries) -> None:
    """Make `path` the whole file, checked. What is there already is continued; what fails the check is deleted."""
    part = Part(path)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        with alone_in(path):
            try:
                _complete(source, part, watcher, retries)
            finally:
                if not part.size:
                    part.discard()
            try:
                _check(path, source)
            except UnveilError:
                part.discard()
                raise


def _complete(source: Source, part: Part, watcher: Watcher, retries: Retries) -> None:
    failures, most = 0, part.size
    for _ in range(20 * retries.tries):
        try:
            _advance(source, part, watcher, retries)
            return
        except TemporaryError as error:
            failures = 0 if part.size > most else failures + 1
            most = max(most, part.size)
            if failures >= retries.tries:
                raise
            pause = min(retries.pause * 2.0**failures, retries.longest_pause)
            watcher.note(f"{error.problem}; trying again in {pause:g} s")
            time.sleep(pause)
    raise UnveilError("the connection breaks again and again", where=source.url, hint="Try later: what came is kept.")


def _advance(source: Source, part: Part, watcher: Watcher, retries: Retries) -> None:
    """One request for what is missing, unless what is there may be of another version of the file: then for all."""
    url, version = part.origin()
    known = url == source.url and (version or source.checksum) and part.size <= (source.size or part.size)
    start = part.size if known else 0
    if start == source.size:
        return
    headers = {"Range": f"bytes={start}-"} | ({"If-Range": version} if version else {}) if start else {}
    with _request(source, headers, retries.timeout) as reply:
        if reply.status != _RANGE_REFUSED:
            _receive(source, reply, part, watcher)
            return
        if start and _total(reply, start) == start:
            return
    if not start:
        raise UnveilError("the server refuses to send the file", where=source.url, found="HTTP 416")
    part.note.unlink(missing_ok=True)
    _advance(source, part, watcher, retries)


def _receive(source: Source, reply: Any, part: Part, watcher: Watcher) -> None:
    start = _range_start(source.url, reply, part.size)
    total = _total(reply, start)
    if reply.headers.get_content_type() == "text/html":
        raise _web_page(source.url)
    _check_size(source, source.size if total is None else total)
    check_room(part.path.parent, (total or 0) - start)
    part.remember(source.url, reply.headers)
    with part.path.open("r+b") as file:
        file.truncate(start)
        file.seek(start)
        watcher.at(start, total)
        for chunk in _chunks(source.url, reply):
            file.write(chunk)
            watcher.at(file.tell(), total)
            if file.tell() > (source.size or file.tell()):
                _check_size(source, file.tell())
    if total is not None and part.size < total:
        found = f"{part.size:,} of {total:,} bytes"
        hint = "What came is kept: run the command again to go on from there."
        raise TemporaryError("the connection broke before the end", where=source.url, found=found, hint=hint)


def _chunks(url: str, reply: Any) -> Iterator[bytes]:
    try:
        while chunk := reply.read(1 << 16):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise _failure(url, error) from error


def _range_start(url: str, reply: Any, have: int) -> int:
    """`Content-Range: bytes 100-199/200` begins at 100; a whole answer begins at 0."""
    if reply.status != _PARTIAL:
        return 0
    stated = reply.headers.get("Content-Range", "")
    start = _number(stated.removeprefix("bytes").partition("-")[0])
    if start is None or start > have:
        raise UnveilError("the server sent another part of the file than was asked for", where=url, found=stated)
    return start


def _total(reply: Any, start: int) -> int | None:
    if stated := reply.headers.get("Content-Range"):
        return _number(stated.rpartition("/")[2])
    length = _number(reply.headers.get("Content-Length", ""))
    return None if length is None else start + length


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def _request(source: Source, headers: dict[str, str], timeout: float) -> Any:
    """What the server answers: status, headers, and the body still to be read; 416 is an answer like any other."""
    parts = urlsplit(source.url)
    if parts.scheme not in ("http", "https", "file") or not (parts.netloc or parts.scheme == "file"):
        raise UnveilError("not a source that can be fetched", found=source.url, expected="an http, https or file URL")
    headers = {"User-Agent": "unveil", "Accept-Encoding": "identity", **headers}
    context = ssl.create_default_context()
    if not source.certificate:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        request = urllib.request.Request(source.url, headers=headers)
        return urllib.request.urlopen(request, timeout=timeout, context=context)
    except urllib.error.HTTPError as error:
        if error.code == _RANGE_REFUSED:
            return error
        error.close()
        meaning = _MEANING.get(error.code, "the server did not give the file")
        kind = TemporaryError if error.code in _WORTH_ANOTHER_TRY else UnveilError
        raise kind(meaning, where=source.url, found=f"HTTP {error.code} {error.reason}", hint=_OTHER_SOURCE) from error
    except (OSError, http.client.HTTPException) as error:
        raise _failure(source.url, error.reason if isinstance(error, urllib.error.URLError) else error) from error


def _failure(url: str, reason: object) -> UnveilError:
    if isinstance(reason, ssl.SSLCertVerificationError):
        problem, found = "the server's certificate is not valid", reason.verify_message
        return UnveilError(problem, where=url, found=found, hint=_OTHER_CERTIFICATE)
    if isinstance(reason, FileNotFoundError) or urlsplit(url).scheme == "file":
        return UnveilError("cannot read the source", where=url, found=str(reason))
    if isinstance(reason, socket.gaierror):
        return TemporaryError("cannot find the server", where=url, hint="Is this machine on the network?")
    if isinstance(reason, TimeoutError):
        return TemporaryError("the server does not answer in time", where=url, hint="Try later, or raise --timeout.")
    if isinstance(reason, ConnectionRefusedError):
        return TemporaryError("the server cannot be reached", where=url, found=str(reason), hint=_OTHER_SOURCE)
    return TemporaryError("the connection broke", where=url, found=str(reason) or type(reason).__name__)


def well_formed(checksum: str) -> str:
    """`md5:…` or `sha256:…` in lower case; anything else is an error."""
    algorithm, _, digits = checksum.lower().partition(":")
    if algorithm not in _DIGITS or not re.fullmatch(f"[0-9a-f]{{{_DIGITS[algorithm]}}}", digits):
        raise UnveilError("not a checksum", found=checksum, expected="md5:<32 hex digits> or sha256:<64 hex digits>")
    return f"{algorithm}:{digits}"


def digest(path: Path, algorithm: str) -> str:
    """`algorithm:hex` of the file's bytes."""
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


def _check(path: Path, source: Source) -> None:
    with path.open("rb") as file:
        start = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise _web_page(source.url)
    _check_size(source, path.stat().st_size)
    if source.checksum is not None and (found := digest(path, source.checksum.partition(":")[0])) != source.checksum:
        problem = "the checksum does not match, so the download was deleted"
        hint = "Run the command again; if it fails again, the file at the source is another one."
        raise UnveilError(problem, where=source.url, found=found, expected=source.checksum, hint=hint)


def _check_size(source: Source, found: int | None) -> None:
    if source.size is not None and found != source.size:
        hint, expected = "A mirror that packs the data otherwise needs its own --checksum.", f"{source.size:,} bytes"
        problem = "not the file that was expected"
        raise UnveilError(problem, where=source.url, found=f"{found:,} bytes", expected=expected, hint=hint)


def _web_page(url: str) -> UnveilError:
    hint = "Open the address in a browser to see what it says, or name another source with --url."
    return UnveilError("the server sent a web page, not the data", where=url, hint=hint)


def check_room(folder: Path, needed: int) -> None:
    """Do not start what the disk cannot hold."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        found, expected = f"{free:,} bytes free", f"{needed:,} bytes"
        hint = "Free some space, or choose another place with --to DIR or UNVEIL_DATA."
        raise UnveilError("not enough room on the disk", where=folder, found=found, expected=expected, hint=hint)
