"""How time and memory grow with users, items, length and width: measured, with slopes, as a table and as JSON.

    python -m benchmarks.slopes [--output slopes.json] [--rounds 3] [--jobs read step …] [--small]

Every measurement is a process of its own with one thread; all are made in each round, in another order, and the median
of the rounds counts. Seconds are those of the processor, so that others on the machine disturb little. Memory is what
a process held at most beyond what it held before the work. One dimension at a time is varied about a middle shape. The
slope is that of a straight line through the logarithms (0: does not grow, 1: as fast, 2: as its square); `each` is
what one more user, item, event of a history or number of width costs, by a straight line through the figures
themselves. With `--jobs`, figures of other jobs stay in the file as they are. `python -m benchmarks.estimate
slopes.json` makes an estimate for other sizes of it.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import jobs
from benchmarks.jobs import Cost, Job, Shape

#: Below this slope nothing is said to grow: it is within what measurements differ by.
FLAT = 0.1
DIMENSIONS = ("users", "items", "length", "width")


@dataclass(frozen=True)
class Sweep:
    """A job, the shape about which it is measured, and the sizes of each dimension that is varied."""

    job: Job
    about: str
    middle: Shape
    sizes: Mapping[str, Sequence[int]]
    needs_log: bool = False

    def shapes(self) -> Iterator[tuple[str, Shape]]:
        """Dimension and shape of every measurement; the middle one serves all dimensions."""
        for dimension, sizes in self.sizes.items():
            for size in sizes:
                yield dimension, replace(self.middle, **{dimension: size})


LOG, NET = Shape(20_000, 10_000), Shape(4000, 8000)
ITEMS, LENGTHS, WIDTHS = (2000, 8000, 32_000, 128_000), (25, 50, 100, 200), (32, 64, 128, 256)
OF_LOG = {"users": (10_000, 20_000, 40_000, 80_000), "items": (2500, 10_000, 40_000, 160_000), "length": LENGTHS}
OF_NET = {"users": (1000, 4000, 16_000, 64_000), "items": ITEMS, "length": LENGTHS, "width": WIDTHS}

SWEEPS: Mapping[str, Sweep] = {
    "read": Sweep(jobs.read, "read into memory, index, split", LOG, OF_LOG, needs_log=True),
    "pack": Sweep(jobs.packed, "pack to disk", LOG, OF_LOG, needs_log=True),
    "pass": Sweep(jobs.passed, "one pass over a packed log", LOG, {"users": OF_LOG["users"]}, needs_log=True),
    "ids": Sweep(jobs.ids, "ids that are text", LOG, {"users": (50_000, 100_000, 200_000, 400_000)}),
    "step": Sweep(jobs.stepped, f"a step, all items, {jobs.ROWS} rows", NET, OF_NET),
    "sampled": Sweep(
        jobs.stepped_sampled, f"a step, {jobs.NEGATIVES} negatives", NET, {"items": ITEMS, "width": WIDTHS}
    ),
    "rank": Sweep(
        jobs.ranked,
        "rank all items for all users",
        replace(NET, users=1000),
        {**OF_NET, "users": (500, 1000, 2000, 4000)},
    ),
    "cases": Sweep(jobs.judged, "what is kept of every case", Shape(20_000, 200, 5), {"users": OF_LOG["users"]}),
    "serve": Sweep(jobs.served, "one request", NET, OF_NET),
}


@dataclass
class Point:
    """A job at a shape, and what it took in each round."""

    job: str
    shape: Shape
    costs: list[Cost] = field(default_factory=list)

    @property
    def cost(self) -> Cost:
        """Medians over the rounds."""
        return Cost(*(median(getattr(cost, name) for cost in self.costs) for name in ("seconds", "mib")))


@dataclass(frozen=True)
class Growth:
    """What a job takes at growing sizes of one dimension."""

    job: str
    dimension: str
    sizes: list[int]
    seconds: list[float]
    mib: list[float]

    def slope(self, quantity: str) -> float:
        """Of the line through (log size, log cost) with the least squares."""
        cost = np.maximum(getattr(self, quantity), 1e-9)
        return float(np.polyfit(np.log(self.sizes), np.log(cost), 1)[0])

    def line(self, quantity: str) -> tuple[float, float]:
        """What none would cost, and each one more: the line through (size, cost), relative errors weighing alike."""
        cost = np.maximum(getattr(self, quantity), 1e-9)
        each, none = np.polyfit(self.sizes, cost, 1, w=1 / cost)
        return float(none), float(each)


def points(chosen: Mapping[str, Sweep]) -> list[Point]:
    """Every different measurement."""
    different = {(name, shape) for name, sweep in chosen.items() for _, shape in sweep.shapes()}
    return [Point(name, shape) for name, shape in sorted(different, key=str)]


def measure(chosen: Mapping[str, Sweep], rounds: int, folder: Path) -> list[Point]:
    """All points, `rounds` times, each time in another order."""
    found, shuffle = points(chosen), random.Random(0).shuffle
    context = get_context("forkserver")  # one process that has loaded everything, and copies of it
    context.set_forkserver_preload(["benchmarks.jobs"])
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as processes:
        for turn in range(rounds):
            for done, point in enumerate(order := _shuffled(found, shuffle)):
                print(f"\rround {turn + 1} of {rounds}: {done + 1} of {len(order)} ", end="", file=sys.stderr)
                sweep, log = chosen[point.job], folder / f"{point.shape.users}-{point.shape.items}-{point.shape.length}"
                if sweep.needs_log and not log.exists():
                    processes.submit(jobs.write_log, point.shape, log).result()
                point.costs.append(processes.submit(sweep.job, point.shape, log).result())
    print(file=sys.stderr)
    return found


def _shuffled(found: list[Point], shuffle: Any) -> list[Point]:
    order = list(found)
    shuffle(order)
    return order


def growths(chosen: Mapping[str, Sweep], found: Sequence[Point]) -> list[Growth]:
    """The points of each job, in the order of each dimension."""
    cost = {(point.job, point.shape): point.cost for point in found}
    told = []
    for name, sweep in chosen.items():
        for dimension, sizes in sweep.sizes.items():
            row = [cost[name, replace(sweep.middle, **{dimension: size})] for size in sizes]
            told.append(Growth(name, dimension, list(sizes), [one.seconds for one in row], [one.mib for one in row]))
    return told


def table(found: Sequence[Growth]) -> list[str]:
    """A row for each job and dimension: sizes, figures at both ends, slopes and what one more costs."""
    lines = [
        "| job | grows with | from … to | seconds of CPU | slope | each, µs | MiB | slope | each, bytes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for growth in found:
        ends = f"{growth.sizes[0]:,} … {growth.sizes[-1]:,}"
        seconds = f"{growth.seconds[0]:.3g} … {growth.seconds[-1]:.3g} | {_grown(growth, 'seconds', 1e6)}"
        memory = f"{growth.mib[0]:.0f} … {growth.mib[-1]:.0f} | {_grown(growth, 'mib', 2.0**20)}"
        lines.append(f"| {growth.job} | {growth.dimension} | {ends} | {seconds} | {memory} |")
    return lines


def _grown(growth: Growth, quantity: str, unit: float) -> str:
    """Slope, and the cost of each where it grows at all."""
    slope, each = growth.slope(quantity), unit * growth.line(quantity)[1]
    return f"{slope:.2f} | " + ("–" if slope < FLAT else f"{each:,.0f}" if each >= 100 else f"{each:.3g}")


def smaller(sweep: Sweep) -> Sweep:
    """The same with sizes that take no time, to see that all is well."""
    tiny = {"users": (30, 60), "items": (20, 40), "length": (3, 6), "width": (4, 8)}
    return replace(sweep, middle=Shape(60, 40, 6, 4), sizes={name: tiny[name] for name in sweep.sizes})


def saved(chosen: Mapping[str, Sweep], found: Sequence[Point]) -> dict[str, Any]:
    """All figures, for others to compute with."""
    return {
        "points": [asdict(point) for point in found],
        "growths": [
            {
                **asdict(growth),
                "slope": {name: growth.slope(name) for name in ("seconds", "mib")},
                "line": {name: growth.line(name) for name in ("seconds", "mib")},
            }
            for growth in growths(chosen, found)
        ],
        "middle": {name: asdict(sweep.middle) for name, sweep in chosen.items()},
    }


def kept(path: Path) -> dict[str, list[Point]]:
    """The points of an earlier file, by job."""
    found: dict[str, list[Point]] = {}
    for point in json.loads(path.read_text())["points"] if path.exists() else []:
        costs = [Cost(**cost) for cost in point["costs"]]
        found.setdefault(point["job"], []).append(Point(point["job"], Shape(**point["shape"]), costs))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="where the figures are kept")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", nargs="+", choices=list(SWEEPS), default=list(SWEEPS))
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that all is well")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    chosen = {name: smaller(SWEEPS[name]) if options.small else SWEEPS[name] for name in options.jobs}
    with TemporaryDirectory() as folder:
        found = measure(chosen, options.rounds, Path(folder))
    if options.output:
        earlier = {name: old for name, old in kept(options.output).items() if name not in chosen and name in SWEEPS}
        chosen = {name: chosen.get(name, sweep) for name, sweep in SWEEPS.items() if name in {*chosen, *earlier}}
        found = [*found, *(point for old in earlier.values() for point in old)]
        options.output.write_text(json.dumps(saved(chosen, found), indent=1) + "\n")
    print(*table(growths(chosen, found)), sep="\n")


if __name__ == "__main__":
    main()
