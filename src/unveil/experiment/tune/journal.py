"""The journal of a study: one line for everything that was done, by all who took part.

Where the disk is full or a machine goes down in the middle of a line, half of it is left. Optuna passes it over at the
end of the file; but it would write the next line right behind it, and from then on read nothing more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import UnveilError
from unveil.experiment.tune.library import journal as library
from unveil.experiment.tune.library import optuna

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


class WholeLines(library.JournalFileOpenLock):
    """The lock that is held while a line is written: whoever gets it finds whole lines in the file."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def acquire(self) -> bool:
        """Wait for the lock, and take off what somebody left half-written."""
        held = super().acquire()
        try:
            _take_off_half_line(Path(self.path))
        except BaseException:
            self.release()
            raise
        return held


@contextmanager
def journal(path: Path) -> Iterator["BaseStorage"]:
    """The journal at a path, made if it is not there; inside, it is told plainly when it cannot be read."""
    name = str(path.resolve())  # the same whatever folder the process works in
    try:
        storage = optuna.storages.JournalStorage(library.JournalFileBackend(name, WholeLines(name)))
    except (ValueError, LookupError, TypeError, AssertionError, RecursionError) as error:
        raise _damaged(path, error) from None
    try:
        yield storage
    except JSONDecodeError as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> UnveilError:
    hint = "Restore it from a copy, or name another folder."
    return UnveilError(f"the study's journal is damaged: {error}", where=path, hint=hint)


def _take_off_half_line(path: Path) -> None:
    with path.open("rb+") as file:
        if not file.seek(0, 2):
            return
        file.seek(-1, 2)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
