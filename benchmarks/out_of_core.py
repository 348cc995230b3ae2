"""A log that need not fit in memory: made file by file, packed, trained on, and weighed, with the peak memory of each.

    python -m benchmarks.out_of_core [FOLDER] [--events 100000000] [--steps 20]

Each step is a process of its own; its peak is what the operating system says of it. FOLDER needs 50 bytes an event and
is kept; without it, a temporary one is used. Weighing is what ITPS on a temporal split does beside training: the cuts
in time, popularity by item and step, the diagnosis of all weights, negatives, and a model's folder with all histories.
Prints, last, one line: `pack_mib=A train_mib=B weigh_mib=C`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

EVENTS, USERS, ITEMS = 100_000_000, 2_000_000, 100_000
#: Cases that are given negatives: each takes a look at every item.
CASES = 10_000
#: Events of one file.
FILE = 1_000_000
FIRST_SECOND = 1_600_000_000

TRAIN = """
import json, sys
from itertools import islice
from pathlib import Path
from unveil import Interactions, Sequences, leave_one_out
from unveil.training.fit import prepare
from unveil.training.recipe import Recipe
import torch

log = Interactions.read(Path(sys.argv[1]))
split = leave_one_out(Sequences.of(log))
small = {"model.width": 32, "model.blocks": 1, "model.heads": 2, "model.length": 50, "task.batch_size": 64}
at_once = {"training.warmup": 0.0, "training.device": "cpu"}  # first steps of a long epoch would be too small
trainer = prepare(split.train, Recipe.preset("quick", "bert4rec").changed(small | at_once), log=log)
torch.manual_seed(0)  # of dropout
losses = [tally.loss for tally in islice(trainer.steps(1), int(sys.argv[2]))]
sizes = {"users": len(log.users), "items": len(log.items), "events": len(log)}
print(json.dumps(sizes | {"train": len(split.train), "test": len(split.test), "losses": losses}))
"""

WEIGH = """
import json, sys
from pathlib import Path
from unveil import Interactions, Sequences, temporal_split
from unveil.evaluation.protocols import Candidates
from unveil.serving.model_files import write
from unveil.serving.recommender import Recommender
from unveil.training.fit import prepare
from unveil.training.recipe import Recipe

log = Interactions.read(Path(sys.argv[1]))
split = temporal_split(Sequences.of(log))
small = {"model.width": 32, "model.blocks": 1, "model.heads": 2, "model.length": 50}
recipe = Recipe.preset("quick", "bert4rec").changed({"estimator.name": "itps"})
recipe = recipe.changed(small | {"estimator.exponent": 0.2})
ready = prepare(split.train, recipe, log=log)
some = split.test.some(slice(int(sys.argv[2])))
drawn = Candidates.draw(some, split.whole, split.train.count_V, uniform=10, popular=10)
write(Recommender(ready.model, log.items, log.users, split.whole, 50), Path(sys.argv[3]))
sizes = {"train": len(split.train), "slots": ready.weights.slots, "spread": ready.weights.spread}
print(json.dumps(sizes | {"negatives": sum(each.size for each in drawn.negatives.values())}))
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


def weighed(log: Path, cases: int, folder: Path) -> Step:
    """A temporal split, popularity, weights, the negatives of some cases, and a model's folder, of a packed log."""
    folder.mkdir()
    return measured([sys.executable, "-c", WEIGH, str(log), str(cases), str(folder)])


def through(folder: Path, events: int, steps: int) -> dict[str, Step]:
    """Make, pack, train, weigh; one line of JSON for each but the first."""
    write_log(folder / "log", events=events, users=max(2, events // 50))
    works: dict[str, Callable[[], Step]] = {
        "pack": lambda: packed(folder / "log", folder / "packed"),
        "train": lambda: trained(folder / "packed", steps),
        "weigh": lambda: weighed(folder / "packed", CASES, folder / "model"),
    }
    found = {}
    for name, work in works.items():
        found[name] = work()
        print(json.dumps({"step": name, **asdict(found[name])}), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = through(given.folder or Path(temporary), given.events, given.steps)
    print(*(f"{name}_mib={step.peak_mib:.0f}" for name, step in found.items()))


if __name__ == "__main__":
    main()
