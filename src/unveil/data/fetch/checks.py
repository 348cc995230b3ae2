"""Is this the file that was meant? Size, checksum, and not a web page in its place."""

import hashlib
import re
import shutil
from pathlib import Path

from unveil.errors import UnveilError

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
