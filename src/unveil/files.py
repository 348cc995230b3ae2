"""Writing without half-written files: everything goes to a temporary neighbour first, to the disk, and is renamed when
whole. Whenever a process is killed or the power fails, a name leads to the old content or to the new one."""

import ctypes
import errno
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any

from unveil import __version__
from unveil.errors import UnveilError

_MEANING = {
    errno.EFBIG: ("the file would be larger than allowed", "Raise the limit or choose another place."),
    errno.ENOSPC: ("the disk is full", "Free some space or choose another place."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space or choose another place."),
    errno.EROFS: ("the file system is read-only", "Choose another place."),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "Choose another place."),
    errno.EEXIST: ("something of that name is in the way", "Choose another name."),
    errno.EACCES: ("permission denied", "Choose a place you may write to."),
    errno.EPERM: ("permission denied", "Choose a place you may write to."),
}


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it becomes `path`, on failure nothing is left."""
    with _temporary(path) as draft:
        draft.touch(exist_ok=False)
        yield draft
        sync(draft)
        draft.replace(path)
        sync(path.parent)


def sync(path: Path) -> None:
    """Onto the disk: a file, or a folder with all that is in it."""
    with suppress(PermissionError):  # some systems open no folders
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all. Text is UTF-8."""
    with atomic_file(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """One JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


@contextmanager
def atomic_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `path`; on success it becomes `path`. An occupied `path` is an error."""
    check_free(path, overwrite=overwrite)
    with _temporary(path) as draft:
        draft.mkdir()
        yield draft
        for each in (draft, *draft.rglob("*")):
            sync(each)
        if path.exists() and not _exchanged(draft, path):
            old = draft.with_suffix(".old")  # whoever is killed now leaves it to the next writer to bring it back
            path.replace(old)
            try:
                draft.replace(path)
            except OSError:
                old.replace(path)
                raise
            _remove(old)
        elif draft.exists() and not path.exists():
            draft.replace(path)
        sync(path.parent)


def _exchanged(one: Path, other: Path) -> bool:
    """Give each of two folders the name of the other, in one step, where the system can."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
        here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        done: int = renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange)
        return sys.platform == "linux" and done == 0
    except (OSError, AttributeError, TypeError):
        return False


#: A hidden name beside the one that is written: .NAME.MACHINE-PROCESS-RANDOM.part, or .old while folders change places.
_DRAFT = re.compile(r"\.(?P<name>.+)\.(?P<machine>[0-9a-f]{8})-(?P<process>\d{1,9})-\w+\.(?P<kind>part|old)")
_WEEK = 7 * 86_400  # seconds after which nobody on another machine is at work on a draft any more


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A name for a draft of `path`; what killed processes left of other ones is removed."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            for found in filter(None, map(_DRAFT.fullmatch, os.listdir(path.parent))):
                if found["name"] == path.name and _is_left(path.parent / found[0], found):
                    if found["kind"] == "old" and not path.exists():
                        (path.parent / found[0]).replace(path)
                    _remove(path.parent / found[0])
        draft = path.with_name(f".{path.name}.{machine()}-{os.getpid()}-{token_hex(4)}.part")
        try:
            yield draft
        finally:
            _remove(draft)


def _is_left(draft: Path, name: re.Match[str]) -> bool:
    if name["machine"] == machine():
        return is_gone(int(name["process"]))
    return time.time() - draft.stat().st_mtime > _WEEK


def is_empty(folder: Path) -> bool:
    """Whether nothing is in it but drafts, which killed processes left."""
    return all(_DRAFT.fullmatch(name) for name in os.listdir(folder))


def machine() -> str:
    """This machine since it was started and, in a container, the container: where a number is one process."""
    where = platform.node()
    with suppress(OSError):
        where += Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(where.encode()):08x}"


def is_gone(process: int) -> bool:
    """Whether a process of this machine has ended; False where the system does not say."""
    if os.name != "posix":  # elsewhere signal 0 is more than a question
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError) as error:  # another user's process is there
        return isinstance(error, ProcessLookupError)
    with suppress(OSError):  # dead, and its parent has not heard of it yet
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    return False


def _remove(draft: Path) -> None:
    if draft.is_dir() and not draft.is_symlink():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


def check_free(
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
        if not overwrite and not is_empty(path):
            raise UnveilError("the output folder is not empty", where=path, hint=hint)
    elif path.exists():
        raise UnveilError("the output is a file, not a folder", where=path, hint="Name another place.")
    _check_writable(path)


def check_resumed(folder: Path, begun: bool, *, resume: bool) -> None:
    """Stop early where what is there would be buried. To resume is to go on, or to start where nothing was begun."""
    if not (resume and begun):
        hint = "Name another." if resume else "Name another; or, if it holds what was stopped, pass --resume."
        check_free(folder, hint=hint)


def check_new_file(path: Path, *, overwrite: bool = False) -> None:
    """Stop early, before any work is done, when a file would be written over."""
    if path.exists() and not overwrite:
        raise UnveilError("the output is there already", where=path, hint="Name another, or pass --overwrite.")
    _check_writable(path)


def _check_writable(path: Path) -> None:
    """Try it in the nearest folder there is: permissions are not all that can stand in the way."""
    with explained(path):
        there = next(each for each in path.absolute().parents if each.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the operating system says about writing into a message with advice, which names no draft."""
    try:
        yield
    except UnveilError:
        raise
    except Exception as error:  # Polars, in Rust, passes on what the system says in words: (os error 28)
        stated = re.search(r"\(os error (\d+)\)", str(error))
        number = getattr(error, "errno", None) or (int(stated[1]) if stated else 0)
        if number not in _MEANING and not _is_about(error, path):
            raise
        other = getattr(error, "strerror", None) or str(error), "Choose another place."
        problem, hint = _MEANING.get(number, other)
        raise UnveilError(f"cannot write: {problem}", where=path, hint=hint) from error


def _is_about(error: Exception, path: Path) -> bool:
    """Whether the system speaks of the path, of a folder above it or of its draft; it may as well be another file."""
    if not isinstance(error, OSError) or not isinstance(error.filename, str):
        return False
    named = Path(error.filename)
    return named in (path, *path.parents) or named.name.startswith(f".{path.name}.")


@contextmanager
def alone_in(path: Path) -> Iterator[None]:
    """Keep every other process that asks out of a folder, or a file, which has to be there.

    The lock is the system's and goes with the process, however that ends; where there are none, nobody is kept out.
    """
    try:
        import fcntl

        handle = os.open(path, os.O_RDONLY)
    except (ImportError, PermissionError):
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = f"another process is at work {'in this folder' if path.is_dir() else 'on this file'}"
            hint = "Wait until it is done, stop it, or name another place."
            raise UnveilError(problem, where=path, hint=hint) from None
        except OSError:
            pass
        yield
    finally:
        os.close(handle)


def check_idle(folder: Path) -> None:
    """Stop early, before any work is done, where another process is in the folder."""
    if folder.is_dir():
        with alone_in(folder):
            pass


def versions() -> dict[str, str]:
    """What a result was made with."""
    system = f"{platform.system()} {platform.machine()}"
    found = {"unveil": __version__, "python": platform.python_version(), "platform": system}
    return found | {package: version(package) for package in ("torch", "numpy", "polars")}
