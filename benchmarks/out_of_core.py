"""A log that need not fit in memory: made file by file, packed, and trained on, with the peak memory of each step.

    python -m benchmarks.out_of_core FOLDER [--events 100000000]

Each step is a process of its own; its peak is what the operating system says of it. FOLDER needs 50 bytes an event.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

EVENTS, USERS, ITEMS = 100_000_000, 2_000_000, 100_000
#: Events of one file.
FILE = 1_000_000
FIRST_SECOND = 1_600_000_000

TRAIN = """
import json, sys
from itertools import islice
from pathlib import Path
from unveil import Interactions, Sequences, leave_one_out
from unveil.training.fit import prepare
from unveil.training.learner import Learner
from unveil.training.recipe import Recipe
import torch

log = Interactions.read(Path(sys.argv[1]))
split = leave_one_out(Sequences.of(log))
small = {"model.width": 32, "model.blocks": 1, "model.heads": 2, "model.length": 50, "task.batch_size": 64}
ready = prepare(split.train, Recipe.preset("quick").changed(small), log=log)
learner = Learner(ready.recipe.training, ready.model, ready.estimator, ready.task, torch.device("cpu"))
torch.manual_seed(0)  # of dropout
losses = [tally.loss for tally in islice(learner.steps(1), int(sys.argv[2]))]
sizes = {"users": len(log.users), "items": len(log.items), "events": len(log)}
print(json.dumps(sizes | {"train": len(split.train), "test": len(split.test), "losses": losses}))
"""


@dataclass(frozen=True)
class Step:
    """What a process printed, and what it took."""

    printed: str
    seconds: float
    cpu_seconds: float
    peak_mib: float


def write_log(folder: Path, *, events: int = EVENTS, users: int = USERS, items: int = ITEMS, seed: int = 0) -> None:
    """Parquet files of events in time order, several a second; some users and items have many, most have few."""
    folder.mkdir(parents=True)
    for nth, start in enumerate(range(0, events, FILE)):
        rng, size = np.random.default_rng([seed, nth]), min(FILE, events - start)
        frame = pl.DataFrame(
            {
                "user_id": (users * rng.random(size, np.float32) ** 1.5).astype(np.int32),
                "item_id": (items * rng.random(size, np.float32) ** 3).astype(np.int32),
                "timestamp": FIRST_SECOND + (start + np.arange(size)) // 3,
            }
        )
        frame.write_parquet(folder / f"events-{nth:05}.parquet", compression="lz4")


def measured(command: Sequence[str]) -> Step:
    """Run a command, and ask the system what its process took."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as output:
        printed = output.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), printed)
    kib = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Step(printed.strip(), time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, kib / 1024)


def packed(log: Path, output: Path) -> Step:
    """`unveil data pack`, as it is typed."""
    program = "import sys; from unveil.cli.main import run; sys.exit(run())"
    return measured([sys.executable, "-c", program, "data", "pack", str(log), "-o", str(output)])


def trained(log: Path, steps: int) -> Step:
    """Histories, the split and some steps of training on a packed log."""
    return measured([sys.executable, "-c", TRAIN, str(log), str(steps)])


def main() -> None:
    """Make, pack, train; one line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    write_log(given.folder / "log", events=given.events, users=max(2, given.events // 50))
    for name, step in (
        ("pack", packed(given.folder / "log", given.folder / "packed")),
        ("train", trained(given.folder / "packed", given.steps)),
    ):
        print(json.dumps({"step": name, **asdict(step)}), flush=True)


if __name__ == "__main__":
    main()
