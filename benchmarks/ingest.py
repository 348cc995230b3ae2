"""Read, filter, index and split 20 M rows, against `polars.read_csv` alone, in one run.

Each measurement is a process of its own, the two kinds take turns, and the best of each counts: machines may be shared.
Prints, last, one line: `ingest_vs_polars=X peak_mib=Y polars_peak_mib=Z`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.generated import EVENTS, write_ratings_csv
from benchmarks.memory import peak_mib


def bare(path: str) -> dict[str, float]:
    """`polars.read_csv` alone."""
    import polars as pl

    start = time.perf_counter()
    pl.read_csv(path)
    return {"seconds": time.perf_counter() - start}


def ingest(path: str) -> dict[str, float]:
    """The whole way from the file to train, validation and test."""
    from unveil import Filters, Interactions, Sequences, leave_one_out

    marks = {"start": time.perf_counter()}
    log = Interactions.read(path)
    marks["read and index"] = time.perf_counter()
    log = Filters(min_item=5, min_user=5)(log)
    marks["filter"] = time.perf_counter()
    sequences = Sequences.of(log)
    marks["sequences"] = time.perf_counter()
    leave_one_out(sequences)
    marks["split"] = time.perf_counter()
    names = list(marks)
    stages = {name: marks[name] - marks[before] for before, name in pairwise(names)}
    return {**stages, "seconds": marks["split"] - marks["start"]}


def measured(kind: str, path: Path) -> dict[str, float]:
    """One measurement in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.ingest", "--only", kind, "--file", str(path)]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def compare(path: Path, rounds: int) -> None:
    runs: dict[str, list[dict[str, float]]] = {"bare": [], "ingest": []}
    for _ in range(rounds):
        for kind, results in runs.items():
            results.append(measured(kind, path))
            print(kind, {name: round(value, 2) for name, value in results[-1].items()}, flush=True)
    best = {kind: min(results, key=lambda result: result["seconds"]) for kind, results in runs.items()}
    ratio = best["ingest"]["seconds"] / best["bare"]["seconds"]
    peaks = {kind: max(result["peak_mib"] for result in results) for kind, results in runs.items()}
    print(f"ingest_vs_polars={ratio:.2f} peak_mib={peaks['ingest']:.0f} polars_peak_mib={peaks['bare']:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, help="a ratings.csv; generated where it is not given")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["bare", "ingest"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        result = (bare if options.only == "bare" else ingest)(str(options.file))
        print(json.dumps({**result, "peak_mib": peak_mib()}))
    elif options.file:
        compare(options.file, options.rounds)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ratings.csv"
            write_ratings_csv(path, events=options.events)
            compare(path, options.rounds)


if __name__ == "__main__":
    main()
