"""Whom a server without a token listens to: this machine, and no web page that a browser on it happens to show.

A page from elsewhere can make a browser ask 127.0.0.1: under a name of its own that it points there (DNS rebinding),
told by `Host`, or across sites, told by `Sec-Fetch-Site` and `Origin`. Where a token is asked for, it has none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

#: Those who look whether the server is alive may call it what they like.
_ANY_NAME = {"/health", "/ready"}
_READING = {"GET", "HEAD", "OPTIONS"}


class OriginError(Exception):
    """Why a request is not answered."""


@dataclass(frozen=True)
class OriginCheck:
    """`names` are hosts that the server may be called, beside loopback's; `strict`: it may be called nothing else."""

    names: frozenset[str] = frozenset()
    strict: bool = False

    @classmethod
    def of(cls, listening: str, names: Iterable[str]) -> Self:
        """Strict where only this machine can reach the server, or where names were given."""
        known = frozenset(_name(each) for each in names)
        return cls(known, strict=is_loopback(listening) or bool(known))

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Refuse a request that was addressed to another name, or that a page from elsewhere makes."""
        host = headers.get("host", "")
        if self.strict and host and path not in _ANY_NAME and not self._is_known(_name(host)):
            raise OriginError(f"this server is not called {_name(host)[:100]!r}: name it with --allow-host")
        if method not in _READING and self._is_from_elsewhere(host, headers):
            raise OriginError("a page from elsewhere may not ask this server: start it with a token, or --allow-host")

    def _is_known(self, name: str) -> bool:
        return is_loopback(name) or name in self.names

    def _is_from_elsewhere(self, host: str, headers: Mapping[str, str]) -> bool:
        origin = headers.get("origin")
        if origin is not None and _name(origin) in self.names:
            return False
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site not in ("same-origin", "none")
        return origin is not None and _netloc(origin) != host.lower()


def is_loopback(name: str) -> bool:
    """Whether a name or an address can only be this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _netloc(origin: str) -> str:
    """Name and port of an origin; nothing where it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _name(given: str) -> str:
    """The name in `name`, `name:port`, `[address]:port` or an origin."""
    try:
        return (urlsplit(given if "://" in given else f"//{given}").hostname or "").rstrip(".")
    except ValueError:
        return ""
