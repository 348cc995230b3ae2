"""The real command in processes of its own: killed, asked to stop, with one worker and with two."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.studies.small import CHANGES, NEGATIVES, tiny_world

UNVEIL = str(Path(sys.executable).with_name("unveil"))
#: What a question writes, but for the files that name the time.
TABLES = ("results.json", "results.csv", "index.html")
CELLS = 2 * 3


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    tiny_world(folder / "tiny")
    return folder


def start(place: Path, where: str, jobs: int) -> "subprocess.Popen[str]":
    """The same command each time, in a folder of its own: it names its folders as seen from there."""
    (place / where).mkdir(exist_ok=True)
    settings = [word for change in (*CHANGES, "training.epochs=6") for word in ("--set", change)]
    arguments = ["--data", "../tiny", "--preset", "quick", "--replicates", "2", "--negatives", str(NEGATIVES)]
    return subprocess.Popen(
        [UNVEIL, "reproduce", "rq1", *arguments, "--estimators", "itps", *settings, "-o", "run", "--jobs", str(jobs)],
        cwd=place / where,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(place: Path, where: str, jobs: int) -> str:
    with start(place, where, jobs) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def cells(place: Path, where: str) -> set[str]:
    return {path.name for path in (place / where / "run" / "cells").glob("w*-*.json")}


def wait_for_cells(place: Path, where: str, count: int, process: "subprocess.Popen[str]") -> None:
    while process.poll() is None and len(cells(place, where)) < count:
        time.sleep(0.002)


def workers(process: "subprocess.Popen[str]") -> list[int]:
    told = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(word) for word in told.read_text().split()] if told.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(scope="module")
def unbroken(place: Path) -> tuple[dict[str, bytes], str]:
    """The tables of a run that nobody stopped, with two workers."""
    out = finish(place, "unbroken", 2)
    return {name: (place / "unbroken" / "run" / name).read_bytes() for name in TABLES}, out


def test_the_terminal_gets_the_table_and_the_reading(unbroken: tuple[dict[str, bytes], str]) -> None:
    for piece in ("True relevance, severity 1, ranked against 5 uniform items", "ITPS", "popularity", "2 replicates"):
        assert piece in " ".join(unbroken[1].split())
    assert len(json.loads(unbroken[0]["results.json"])["rows"]) > 50


def test_a_killed_run_goes_on_and_gives_the_same_tables_whatever_the_number_of_workers(
    place: Path, unbroken: tuple[dict[str, bytes], str]
) -> None:
    with start(place, "killed", 1) as process:
        wait_for_cells(place, "killed", 2, process)
        left = workers(process)
        process.kill()
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    kept = cells(place, "killed")
    assert 2 <= len(kept) < CELLS
    assert not (place / "killed" / "run" / "results.json").exists()
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in left) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in left)
    finish(place, "killed", 1)
    assert json.loads((place / "killed" / "run" / "about.json").read_text())["cells_made"] == CELLS - len(kept)
    for name, content in unbroken[0].items():
        assert (place / "killed" / "run" / name).read_bytes() == content, name


def test_a_run_that_is_asked_to_stop_says_how_to_go_on(place: Path) -> None:
    with start(place, "stopped", 1) as process:
        wait_for_cells(place, "stopped", 1, process)
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    message = err.splitlines()[-1]
    assert message.startswith("unveil: stopped; ")
    assert f"of {CELLS} cells are done and kept in run. Go on with the same command." in message
    assert "Traceback" not in err
