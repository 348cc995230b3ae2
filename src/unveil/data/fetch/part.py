"""The unfinished file on disk, what is known of where it came from, and the sole right to write it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from unveil.errors import UnveilError

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
