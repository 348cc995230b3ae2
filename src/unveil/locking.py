"""One process at a time in a folder. The lock is the system's: it goes with the process, however that ends.

Nothing is written: the folder itself is locked. Where the system or the file system has no such locks, nobody is
kept out.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unveil.errors import UnveilError


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep every other process that asks out of the folder, which has to be there."""
    handle = _locked(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def refuse_busy(folder: Path) -> None:
    """Stop early, before any work is done, where another process is in the folder."""
    if folder.is_dir():
        with alone_in(folder):
            pass


def _locked(folder: Path) -> int | None:
    """A handle that holds the lock until it is closed; None where there are no locks."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, PermissionError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if not isinstance(error, BlockingIOError):
            return None
        hint = "Wait until it is done, stop it, or name another folder."
        raise UnveilError("another process is at work in this folder", where=folder, hint=hint) from None
    return handle
