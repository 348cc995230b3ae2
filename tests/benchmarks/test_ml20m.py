"""The benchmark of an ml-20m-shaped log, at a size that takes seconds."""

import subprocess
import sys
from pathlib import Path

from benchmarks.ml20m import Taken, told

ROOT = Path(__file__).parents[2]
SMALL = ["--users=60", "--events=2000", "--items=300", "--threads=1", "--batches=1", "--cases=20"]


def run(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.ml20m", *SMALL, *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_a_small_log_from_the_file_to_the_ranks() -> None:
    done = run("--most-mib=100")
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("the peak is above 100 MiB")
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:-2]] == ["read", "split", "prepare", "epoch", "negatives", "rank"]
    assert "(from the 33.3% that was done)" in lines[5]
    assert "100 epochs" in lines[-2]
    figures = dict(figure.split("=") for figure in lines[-1].split())
    assert list(figures) == ["epoch_seconds", "rank_seconds", "peak_mib", "events_per_s", "full_run_hours"]
    assert all(float(value) > 0 for value in figures.values())


def test_what_a_full_run_takes_by_hand() -> None:
    seconds = {"read": 5.0, "epoch": 36.0, "rank": 72.0}
    cpu, peak = {name: 2 * taken for name, taken in seconds.items()}, dict.fromkeys(seconds, 1000.0)
    lines = told(Taken(seconds, cpu, peak, events=3600, epochs=100, measured={"epoch": 0.5}))
    # A hundred epochs and validations of 108 s each, then reading and one more ranking.
    assert lines[-1].endswith(f"events_per_s=100 full_run_hours={(10_800 + 77) / 3600:.2f}")
    assert lines[1] == "epoch: 36.0 s, 72.0 s of CPU (from the 50.0% that was done), peak so far 1,000 MiB"
    assert lines[0] == "read: 5.0 s, 10.0 s of CPU, peak so far 1,000 MiB"
