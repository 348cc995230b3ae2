"""Two workers against one process with as many threads, on MovieLens 1M; seconds an epoch, validation apart.

    python -m benchmarks.workers [LOG] [--epochs 3] [--workers 2] [--turns 3] [--batch 64]

Without a log, or UNVEIL_TEST_DATA to find one in, a generated log of the same shape is used. Each is run by itself,
since both want all cores, and they take turns: on a machine that others use too the figures mean little. The first
epoch of a run warms up and is left out. Prints, last, one line with the median of the turns' ratios:
`workers_vs_threads=X`.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks.train import default_log, generated
from unveil.runs.config import Experiment
from unveil.runs.run_folder import Run
from unveil.runs.train import run, run_workers


def written(folder: Path) -> Path:
    """The generated log as a file."""
    sequences, path = generated(), folder / "log.parquet"
    columns = {"user_id": sequences.user_N, "item_id": sequences.item_N, "timestamp": sequences.event_N}
    pl.DataFrame(columns).write_parquet(path)
    return path


def seconds(finished: Run) -> float:
    """Of an epoch, the first left out."""
    return median(epoch.seconds for epoch in finished.fitted.epochs[1:])


def turn(experiment: Experiment, workers: int, folder: Path) -> float:
    """How much faster workers are than threads, each run once."""
    alone = run(experiment.changed({"training.threads": workers}), folder / "alone")
    shared = run_workers(experiment.changed({"training.threads": 1}), folder / "shared", workers)
    slow, fast = seconds(alone), seconds(shared)
    print(f"one process, {workers} threads: {slow:.2f} s an epoch; {workers} workers: {fast:.2f} s", flush=True)
    return slow / fast


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, nargs="?", default=default_log())
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        changes = {
            "data.log": str(asked.log or written(folder)),
            "training.epochs": asked.epochs,
            "training.validate_every": asked.epochs,
            "training.device": "cpu",
            "model.width": 64,
            "task.batch_size": asked.batch,
        }
        experiment = Experiment.of("quick", changes)
        ratios = [turn(experiment, asked.workers, folder / str(nth)) for nth in range(asked.turns)]
    print(f"workers_vs_threads={median(ratios):.2f}")


if __name__ == "__main__":
    main()
