"""Drafts: hidden neighbours of what is being written, named after the process that writes them.

So the next writer can tell what a killed process left behind from what a living one works on.
"""

import os
import platform
import re
import shutil
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

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
