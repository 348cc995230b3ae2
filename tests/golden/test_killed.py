"""Commands that are killed and run again end with the numbers of those that were not: those of `stopped-*`."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.golden.aliases import Aliases
from tests.golden.commands import CASES
from tests.golden.recording import Check, Recording, differences
from tests.golden.runner import workplace


def _slow(case: str) -> ParameterSet:
    """Quick tests kill these as well: tests/cli, tests/experiment/reproduce."""
    return pytest.param(case, marks=pytest.mark.slow)


#: What is there when the command has got some way: a pattern, and how many of them.
_SOME_WAY = {
    "stopped-run": ("stopped-run/checkpoint.safetensors", 1),
    "stopped-rq1": ("stopped-rq1/cells/w0-*.json", 3),
    "stopped-loop": ("stopped-loop/states/*.safetensors", 1),
}


@pytest.mark.parametrize("case", [*map(_slow, ("stopped-run", "stopped-rq1")), "stopped-loop"])
def test_what_was_killed_goes_on_to_the_same_numbers(case: str) -> None:
    old = Recording.read(case)
    check = Check.of(case, old)
    with workplace() as folder:
        _killed(case, folder)
        new = Recording.run_in(folder, CASES[case].commands)
    assert list(differences(case, old, new, check, Aliases.read())) == []
    if check.note:
        pytest.skip(check.note)


def _killed(case: str, folder: Path) -> None:
    """Run the command until it has got some way, then kill it and the processes that it started."""
    (words,) = CASES[case].unbroken().commands
    command = [sys.executable, "-m", "unveil", *shlex.split(words)]
    quiet = subprocess.DEVNULL
    pattern, count = _SOME_WAY[case]
    with subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True) as process:
        while process.poll() is None and len(list(folder.glob(pattern))) < count:
            time.sleep(0.005)
        assert process.poll() is None, "it ended before it could be killed"
        os.killpg(process.pid, signal.SIGKILL)
