"""Writing without half-written files: everything goes to a temporary neighbour first and is renamed when whole."""

import errno
import json
import os
import platform
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from unveil import __version__
from unveil.errors import UnveilError

_SUFFIX = ".part"


def draft_file(path: Path) -> Path:
    """An empty file beside `path`; drafts of it that nobody works on any more are removed."""
    _sweep(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{_owner(path)}{os.getpid()}-", suffix=_SUFFIX)
    os.close(handle)
    return Path(name)


def draft_folder(path: Path) -> Path:
    """An empty folder beside `path`; drafts of it that nobody works on any more are removed."""
    _sweep(path)
    return Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{_owner(path)}{os.getpid()}-", suffix=_SUFFIX))


def _owner(path: Path) -> str:
    """How the drafts of `path` are called that were begun on this machine: .NAME.MACHINE-; a process number follows."""
    return f".{path.name}.{_machine()}-"


def _sweep(path: Path) -> None:
    """Remove the drafts of `path` whose processes are gone; those of other machines stay, whatever became of them."""
    name = re.compile(rf"{re.escape(_owner(path))}(\d{{1,9}})-\w+{re.escape(_SUFFIX)}")
    with suppress(OSError):
        for found in filter(None, map(name.fullmatch, os.listdir(path.parent))):
            if _is_gone(int(found[1])):
                _remove(path.parent / found[0])


def _machine() -> str:
    """This machine since it was started and, in a container, the container: where a number is one process."""
    where = platform.node()
    with suppress(OSError):
        where += Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(where.encode()):08x}"


def _is_gone(process: int) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is more than a question
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it is there, and somebody else's
    return False


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


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


_MEANING = {
    errno.EFBIG: ("the file would be larger than allowed", "Raise the limit or choose another place."),
    errno.ENOSPC: ("the disk is full", "Free some space or choose another place."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space or choose another place."),
    errno.EROFS: ("the file system is read-only", "Choose another place."),
    errno.EACCES: ("permission denied", "Choose a place you may write to."),
    errno.EPERM: ("permission denied", "Choose a place you may write to."),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "Choose another place."),
    errno.EEXIST: ("something of that name is in the way", "Choose another name."),
}


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it becomes `path`, on failure nothing is left."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_file(path)
        try:
            yield draft
            _give_usual_mode(draft)
            _flush_to_disk(draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all. Text is UTF-8."""
    with atomic_file(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `path`; on success it becomes `path`. An occupied `path` is refused."""
    refuse_occupied(path, overwrite=overwrite)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_folder(path)
        try:
            draft.chmod(0o777 & ~_umask())
            yield draft
            _swap_in(draft, path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def refuse_occupied(
    path: Path,
    *,
    overwrite: bool = False,
    hint: str = "Name another, or pass --overwrite.",
    inputs: Iterable[Path | str] = (),
) -> None:
    """Stop early, before any work is done, when the output would bury something; what is read is never buried."""
    for each in map(Path, inputs):
        if each.exists() and each.resolve().is_relative_to(path.resolve()):
            raise UnveilError("the output folder holds what is read", where=path, found=str(each), hint="Name another.")
    if path.is_dir():
        if any(path.iterdir()) and not overwrite:
            raise UnveilError("the output folder is not empty", where=path, hint=hint)
    elif path.exists():
        raise UnveilError("the output is a file, not a folder", where=path, hint="Name another place.")
    _refuse_unwritable(path)


def refuse_existing(path: Path, *, overwrite: bool = False) -> None:
    """Stop early, before any work is done, when a file would be written over."""
    if path.exists() and not overwrite:
        raise UnveilError("the output is there already", where=path, hint="Name another, or pass --overwrite.")
    _refuse_unwritable(path)


def _refuse_unwritable(path: Path) -> None:
    """Try it in the nearest folder there is: permissions are not all that can stand in the way."""
    with explained(path):
        there = next(each for each in path.absolute().parents if each.exists())
        try:
            with tempfile.NamedTemporaryFile(dir=there, prefix=".unveil."):
                pass
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error


def _swap_in(draft: Path, path: Path) -> None:
    if not path.exists():
        draft.replace(path)
        return
    old = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".old"))
    path.replace(old)
    try:
        draft.replace(path)
    except OSError:
        old.replace(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the operating system says about writing into a message with advice, which names no draft."""
    try:
        yield
    except Exception as error:  # Polars passes on what the system says of a Parquet file as an error of its own
        if _number(error) not in _MEANING and not _is_about(error, path):
            raise
        other = getattr(error, "strerror", None) or str(error), "Choose another place."
        problem, hint = _MEANING.get(_number(error), other)
        raise UnveilError(f"cannot write: {problem}", where=path, hint=hint) from error


def _number(error: Exception) -> int:
    """What went wrong, as the system counts it; libraries written in Rust tell it in words alone."""
    if isinstance(error, UnveilError):
        return 0
    told = re.search(r"\(os error (\d+)\)", str(error))
    return (error.errno if isinstance(error, OSError) else 0) or (int(told[1]) if told else 0)


def _is_about(error: Exception, path: Path) -> bool:
    """Whether the system speaks of the path, of a folder above it or of its draft; it may as well be another file."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str):
        return False
    named = Path(error.filename)
    return named in (path, *path.parents) or named.name.startswith(f".{path.name}.")


def _flush_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _give_usual_mode(path: Path) -> None:
    path.chmod(0o666 & ~_umask())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """One JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def versions() -> dict[str, str]:
    """What a result was made with."""
    found = {
        "unveil": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for package in ("torch", "numpy", "polars"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
