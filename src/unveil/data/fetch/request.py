"""One HTTP request, and its failures in plain words: those worth another try, and those that are final."""

import http.client
import socket
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from types import TracebackType
from typing import IO, Self
from urllib.parse import urlsplit

from unveil.errors import UnveilError

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
