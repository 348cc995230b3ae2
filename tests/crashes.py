"""A command that is stopped at any of its file operations: the operations are Python's own audit events.

As a program it serves: it loads what is heavy once, then forks for each command that it reads, as a line of JSON, from
standard input, and answers with the exit code of the child and the number of operations that it did.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KILLED = 137
#: Audit events that change what is on the disk; opening counts where it is to write.
_CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink"}


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    operations: int
    said: str


class Server:
    """The program, and a method to ask it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def run(self, command: Sequence[object], within: Path, stop_at: int = 0, why: str = "kill") -> Outcome:
        """Run an unveil command; at operation `stop_at`, counted from 1, kill it, or let the disk be full."""
        job = {"command": list(map(str, command)), "within": str(within), "stop_at": stop_at, "why": why}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return Outcome(**json.loads(self.process.stdout.readline()))


@contextmanager
def server() -> Iterator[Server]:
    command = [sys.executable, __file__]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def _count(within: str, stop_at: int, why: str) -> list[int]:
    """From now on count the operations below a folder, and stop at one of them."""
    done = [0]

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif event in _CHANGES:
            path = arguments[0]
        else:
            return
        if not isinstance(path, str | bytes | os.PathLike) or not os.fsdecode(path).startswith(within):
            return
        done[0] += 1
        if done[0] == stop_at and why == "kill":
            os._exit(KILLED)
        if done[0] >= stop_at > 0 and why == "disk full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fsdecode(path))

    sys.addaudithook(look)
    return done


def _child(job: dict[str, Any], said: Path) -> None:
    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    from unveil.cli.main import run

    sys.argv = ["unveil", *job["command"]]
    done = _count(job["within"], job["stop_at"], job["why"])
    code = 0
    try:
        run()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os.ftruncate(handle, os.lseek(handle, 0, os.SEEK_CUR))
    os.write(handle, f"\n{done[0]}".encode())
    os._exit(code)


def _serve() -> None:
    import tempfile

    import matplotlib.figure
    import optuna

    import unveil.cli.main
    import unveil.data.packed
    import unveil.runs.report_page
    import unveil.runs.tune.search
    import unveil.runs.tune.subjects
    import unveil.serving.export
    import unveil.studies.loop

    assert all((matplotlib, optuna, unveil))
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        for line in sys.stdin:
            if not (child := os.fork()):
                _child(json.loads(line), said)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            text, _, count = said.read_text(errors="replace").rpartition("\n")
            operations = 0 if code == KILLED else int(count)
            print(json.dumps({"code": code, "operations": operations, "said": text}), flush=True)


if __name__ == "__main__":
    _serve()
