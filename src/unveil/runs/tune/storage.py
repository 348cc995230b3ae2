"""Where a study is kept: a journal in its folder, or a database that many machines reach. Optuna is imported here."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from unveil.data.readers.database import is_url, shown
from unveil.errors import UnveilError
from unveil.training.checkpoint import differences

try:
    import optuna as optuna
    from optuna.storages import journal
except ModuleNotFoundError as error:
    raise UnveilError("tuning needs Optuna", hint="Run: pip install 'unveil[tune]'.") from error

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RDBStorage

optuna.logging.set_verbosity(optuna.logging.WARNING)

JOURNAL = "journal.log"
IDENTITY = "identity"
_SECONDS = 5  # to wait for a server
_LOCK_SECONDS = 30  # to wait for others who write
_ATTEMPTS = 5  # at opening: whoever comes first makes the tables, and others may see them half made


@contextmanager
def opened(url: str | None, folder: Path) -> Iterator["BaseStorage"]:
    """The database at `url`, or the journal in the folder; inside, errors say plainly that it cannot be used."""
    if url is None:
        with _journal((folder / JOURNAL).resolve()) as kept:  # the same whatever folder the process works in
            yield kept
        return
    _check_url(url)
    with _explained(url):
        storage = _database(url)
        try:
            yield storage
        finally:
            storage.remove_session()
            storage.engine.dispose()


def check_reachable(url: str | None) -> None:
    """Before a log is read, which may take minutes: a server that does not answer."""
    if url is None:
        return
    _check_url(url)
    if url.startswith("sqlite"):  # to connect to a file makes it
        return
    with _explained(url):
        engine = create_engine(_driven(url), connect_args=_waits(url))
        engine.connect().close()
        engine.dispose()


class WholeLines(journal.JournalFileOpenLock):
    """The lock that is held while a line is written; whoever gets it first removes half a line at the end.

    A full disk or a lost machine leaves one. Optuna ignores it, but would append the next line to it, and from then on
    read nothing more.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path

    def acquire(self) -> bool:
        """Wait for the lock, then look at the end of the file."""
        held = super().acquire()
        try:
            with self.path.open("rb+") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - 1))
                if file.read(1) not in (b"", b"\n"):
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
        except BaseException:
            self.release()
            raise
        return held


@contextmanager
def _journal(path: Path) -> Iterator["BaseStorage"]:
    hint = "Restore it from a copy, or name another folder."
    try:
        storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(path), WholeLines(path)))
    except (ValueError, LookupError, TypeError, AssertionError, RecursionError) as error:
        raise UnveilError(f"the study's journal is damaged: {error}", where=path, hint=hint) from None
    try:
        yield storage
    except JSONDecodeError as error:
        raise UnveilError(f"the study's journal is damaged: {error}", where=path, hint=hint) from None


def _check_url(url: str) -> None:
    try:
        make_url(url)
        if is_url(url):
            return
    except (SQLAlchemyError, ValueError):
        pass
    expected = "sqlite:///PATH or postgresql://NAME:PASSWORD@HOST:PORT/DATABASE"
    raise UnveilError("not a database URL", where="--storage", found=url, expected=expected)


def _driven(url: str) -> str:
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url)


def _waits(url: str) -> dict[str, int]:
    return {"timeout": _LOCK_SECONDS} if url.startswith("sqlite") else {"connect_timeout": _SECONDS}


def _database(url: str) -> "RDBStorage":
    options = {"connect_args": _waits(url), "pool_pre_ping": True}
    for attempt in range(_ATTEMPTS):
        try:
            return optuna.storages.RDBStorage(_driven(url), engine_kwargs=options)
        except SQLAlchemyError as error:
            made_at_once = re.search(r"already exists|duplicate key|UNIQUE constraint", str(error))
            if attempt == _ATTEMPTS - 1 or not made_at_once:
                raise
            time.sleep(0.5)
    raise AssertionError


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Say plainly that a storage cannot be used. What was trained until then is kept, and gone on with later."""
    try:
        yield
    except ImportError as error:
        hint = "Run: pip install 'unveil[sql]'."
        raise UnveilError(f"the database's driver is missing: {error}", where=shown(url), hint=hint) from None
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        cause = getattr(error, "orig", None) or error.__cause__ or error
        problem = f"the study's storage cannot be used: {str(cause).strip().split(chr(10), maxsplit=1)[0][:300]}"
        hint = "Nothing is lost: give the same command again when it can be reached."
        raise UnveilError(problem, where=shown(url), hint=hint) from None


def join(
    name: str, storage: "BaseStorage", sampler: Any, pruner: Any, identity: Mapping[str, Any], *, lower: bool = False
) -> "optuna.Study":
    """The study of that name, created if it does not exist; one that was begun with anything else is an error."""
    towards = optuna.study.StudyDirection.MINIMIZE if lower else optuna.study.StudyDirection.MAXIMIZE
    try:
        study = optuna.create_study(storage=storage, study_name=name, sampler=sampler, pruner=pruner, direction=towards)
        study.set_user_attr(IDENTITY, dict(identity))
    except optuna.exceptions.DuplicatedStudyError:
        study = optuna.load_study(storage=storage, study_name=name, sampler=sampler, pruner=pruner)
        _check_same(study, identity)
    return study


def _check_same(study: "optuna.Study", identity: Mapping[str, Any]) -> None:
    for _ in range(_ATTEMPTS):  # whoever created it may not have said yet what it is
        if IDENTITY in study.user_attrs:
            break
        time.sleep(0.5)
    else:
        study.set_user_attr(IDENTITY, dict(identity))
    begun = study.user_attrs[IDENTITY]
    known = {name: value for name, value in identity.items() if name in begun}  # an older version may have said less
    for what, before, now in differences(begun, known):
        problem = f"another {what}" if what in ("log", "world") else f"{what} = {before}, and now it is {now}"
        hint = "Join with the settings and the data it began with, or name another folder: its name is the study's."
        raise UnveilError(f"the study began with {problem}", where=f"study {study.study_name}", hint=hint)
