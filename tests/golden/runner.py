"""Runs the commands of a case in this process, in a folder of its own."""

import io
import os
import runpy
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
INPUTS = HERE / "inputs"
_SOURCE = str(HERE.parents[1] / "src")

# The package beside these tests, here and in the processes that commands start.
sys.path.insert(0, _SOURCE)
os.environ["PYTHONPATH"] = os.pathsep.join([_SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is loaded: sums are added up in one order


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def run_command(words: str) -> Done:
    """`unveil WORDS`, as `python -m unveil` runs it, in the working folder."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with _as_a_program(words.split()), redirect_stdout(out), redirect_stderr(err):
        code = _exit_code()
    return Done(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def _exit_code() -> int:
    try:
        runpy.run_module("unveil", run_name="__main__", alter_sys=False)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:  # as the interpreter ends
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _as_a_program(arguments: list[str]) -> Iterator[None]:
    before, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["unveil", *arguments]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.argv = before
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def workplace(folders: tuple[str, ...] = ()) -> Iterator[Path]:
    """A working folder with the inputs in `in`, and some that an older version wrote."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(INPUTS, folder / "in")
        for each in folders:
            shutil.copytree(HERE / "folders" / each, folder / each)
        with chdir(folder):
            yield folder
