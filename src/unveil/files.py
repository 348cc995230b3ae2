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
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)


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
def _temporary(path: Path) -> Iterator[Path]:
    """A hidden name beside `path`, .NAME.MACHINE-PROCESS-RANDOM.part, from which the next writer can tell what a killed
    process left behind, which is removed, from what a living one works on."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        begin = f".{path.name}.{machine()}-"
        left = re.compile(rf"{re.escape(begin)}(\d{{1,9}})-\w+\.part")
        with suppress(OSError):
            for found in filter(None, map(left.fullmatch, os.listdir(path.parent))):
                if is_gone(int(found[1])):
                    _remove(path.parent / found[0])
        draft = path.with_name(f"{begin}{os.getpid()}-{token_hex(4)}.part")
        try:
            yield draft
        finally:
            _remove(draft)


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
    if draft.is_dir():
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
        if any(path.iterdir()) and not overwrite:
            raise UnveilError("the output folder is not empty", where=path, hint=hint)
    elif path.exists():
        raise UnveilError("the output is a file, not a folder", where=path, hint="Name another place.")
    _check_writable(path)


def check_resumed(folder: Path, begun: bool, *, resume: bool) -> None:
    """Stop early where there is nothing to resume, or what is there would be buried."""
    if not resume:
        check_free(folder, hint="Name another; or, if it holds what was stopped, pass --resume.")
    elif not begun:
        raise UnveilError("there is nothing to resume", where=folder, hint="Leave --resume out.")


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
            with tempfile.NamedTemporaryFile(dir=there, prefix=".unveil."):
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
