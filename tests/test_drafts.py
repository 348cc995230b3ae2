"""What a killed process left half-written goes with the next writer; what anybody else works on stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unveil.files import atomic_file, atomic_folder, write_whole

#: A process that begins a draft, says so, and waits; then it ends its work, unless it is killed.
FILE = """
from pathlib import Path
from unveil.files import atomic_file
with atomic_file(Path({target!r})) as draft:
    draft.write_text("half")
    print(flush=True)
    input()
    draft.write_text("whole")
"""
FOLDER = FILE.replace("atomic_file", "atomic_folder").replace("draft.write_text", "(draft / 'a').write_text")


def begun(program: str, target: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program.format(target=str(target))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def killed(program: str, target: Path) -> Path:
    """The draft that is left."""
    with begun(program, target) as process:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    (draft,) = (path for path in target.parent.iterdir() if path.name.startswith(f".{target.name}."))
    return draft


@pytest.mark.parametrize("program", [FILE, FOLDER], ids=["file", "folder"])
def test_the_next_writer_sweeps_up(program: str, tmp_path: Path) -> None:
    killed(program, tmp_path / "out")
    with (atomic_file if program == FILE else atomic_folder)(tmp_path / "out") as draft:
        assert os.listdir(tmp_path) == [draft.name]
    assert os.listdir(tmp_path) == ["out"]


def test_a_draft_that_somebody_works_on_stays(tmp_path: Path) -> None:
    with begun(FILE, tmp_path / "out") as other:
        write_whole(tmp_path / "out", "mine")
        assert len(os.listdir(tmp_path)) == 2
        other.communicate("go on\n", timeout=30)
    assert other.returncode == 0
    assert (tmp_path / "out").read_text() == "whole"
    assert os.listdir(tmp_path) == ["out"]


def test_drafts_of_other_machines_and_of_other_files_stay(tmp_path: Path) -> None:
    left = killed(FILE, tmp_path / "out")
    machine = left.name.split(".")[2].partition("-")[0]
    elsewhere = left.rename(left.with_name(left.name.replace(machine, "0" * len(machine))))
    other = killed(FILE, tmp_path / "out.csv")
    write_whole(tmp_path / "out", "mine")
    assert {path.name for path in tmp_path.iterdir()} == {"out", elsewhere.name, other.name}
