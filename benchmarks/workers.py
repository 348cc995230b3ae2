"""Two workers of torchrun against one process with as many threads, on MovieLens 1M; seconds an epoch, no validation.

    python -m benchmarks.workers [LOG] [--epochs 3] [--workers 2] [--turns 3] [--batch 64]

Without a log, or UNVEIL_TEST_DATA to find one in, a generated log of the same shape is used. Each is run by itself,
since both want all cores, and they take turns: on a machine that others use too the figures mean little. The first
epoch of a run warms up and is left out. Prints, last, one line with the median of the turns' ratios:
`workers_vs_threads=X`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks.train import default_log, generated


def written(folder: Path) -> Path:
    """The generated log as a file."""
    sequences, path = generated(), folder / "log.parquet"
    columns = {"user_id": sequences.user_N, "item_id": sequences.item_N, "timestamp": sequences.event_N}
    pl.DataFrame(columns).write_parquet(path)
    return path


def seconds(command: list[str], folder: Path, *launcher: str) -> float:
    """Of an epoch, the first left out."""
    words = [sys.executable, *launcher, "-m", "unveil", *command, "-o", str(folder), "--no-page"]
    subprocess.run(words, check=True, capture_output=True)
    epochs: list[float] = [json.loads(line)["seconds"] for line in (folder / "training.jsonl").open()]
    return median(epochs[1:])


def turn(command: list[str], workers: int, folder: Path) -> float:
    """How much faster workers are than threads, each run once."""
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(workers))
    slow = seconds([*command, "--set", f"training.threads={workers}"], folder / "alone")
    fast = seconds([*command, "--set", "training.threads=1"], folder / "shared", *torchrun)
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
            "training.epochs": asked.epochs,
            "training.validate_every": asked.epochs,
            "training.device": "cpu",
            "model.width": 64,
            "task.batch_size": asked.batch,
        }
        settings = [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
        command = ["train", str(asked.log or written(folder)), "--preset", "quick", *settings]
        ratios = [turn(command, asked.workers, folder / str(nth)) for nth in range(asked.turns)]
    print(f"workers_vs_threads={median(ratios):.2f}")


if __name__ == "__main__":
    main()
