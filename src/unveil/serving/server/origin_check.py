"""Which requests a server without a token accepts: those of this machine, but not of web pages of another origin.

A page of another origin can make a browser request 127.0.0.1: under a name of its own (DNS rebinding), seen in `Host`,
or across sites, seen in `Sec-Fetch-Site` and `Origin`. With a token this is not needed: such a page has none.
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
    """Why a request is refused."""


@dataclass(frozen=True)
class OriginCheck:
    """`names` are accepted host names besides loopback's; `strict`: no others are accepted."""

    names: frozenset[str] = frozenset()
    strict: bool = False

    @classmethod
    def of(cls, listening: str, names: Iterable[str]) -> Self:
        """Strict where only this machine can reach the server, or where names were given."""
        known = frozenset(_name(each) for each in names)
        return cls(known, strict=is_loopback(listening) or bool(known))

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Refuse a request to another host name, or from a page of another origin."""
        host = headers.get("host", "")
        if self.strict and host and path not in _ANY_NAME and not self._is_known(_name(host)):
            raise OriginError(f"{_name(host)[:100]!r} is no host name of this server: add --allow-host")
        if method not in _READING and self._is_from_elsewhere(host, headers):
            raise OriginError(
                "a page of another origin may not use this server: start it with a token, or --allow-host"
            )

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
    """Whether a name or an address is of this machine only."""
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
