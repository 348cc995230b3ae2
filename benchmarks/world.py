"""Drawing a log from a world of the size of MovieLens 100K, and of MovieLens 1M: time and memory.

    python -m benchmarks.world [--large] [--choice rational_exposed]

Each world has random factors and is drawn from in a process of its own, on one core. Seconds are told twice: as they
passed, and as the processor spent them, which counts where others use the cores too. Prints, last, one line:
`draw_seconds=X cpu_seconds=Y peak_mib=Z`, those of the largest world drawn.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.memory import peak_mib
from unveil.data.indexing import Vocabulary
from unveil.propensity.factors import Factors
from unveil.simulation.world import World

ROOT = Path(__file__).parents[1]
#: users, items, steps, factors
SMALL, LARGE = (943, 1349, 100, 60), (6040, 3416, 200, 60)


def random_world(users: int, items: int, steps: int, factors: int) -> World:
    """Logits of standard deviation 1.5: relevance about 0, exposure about −3."""
    rng = np.random.default_rng(0)

    def logits(mean: float) -> Factors:
        tables = (rng.standard_normal((size, factors)) for size in (users, items, steps))
        return Factors.constant(users, items, steps, mean).plus(Factors.of(*tables), 1.5 / np.sqrt(factors))

    return World(
        relevance_logits=logits(0.0),
        exposure_logits=logits(-3.0),
        users=Vocabulary([f"u{number:05d}" for number in range(users)]),
        items=Vocabulary([f"i{number:05d}" for number in range(items)]),
        start_U=np.zeros(users, np.int32),
        severity=1.0,
        origin={"kind": "random"},
    )


def drawn(size: tuple[int, int, int, int], choice: str) -> dict[str, float]:
    world = random_world(*size)
    begun, spent = time.perf_counter(), time.process_time()
    log = world.log(np.random.default_rng(1), choice)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
    return {"events": len(log), "seconds": seconds, "cpu": cpu, "peak_mib": peak_mib()}


def measured(size: tuple[int, int, int, int], choice: str) -> dict[str, float]:
    """One draw in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.world", "--choice", choice, "--only", json.dumps(size)]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--large", action="store_true", help="also a world of the size of MovieLens 1M: a minute or two"
    )
    parser.add_argument("--choice", default="rational_exposed")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(drawn(tuple(json.loads(options.only)), options.choice)))
        return
    for size in (SMALL, LARGE) if options.large else (SMALL,):
        result = measured(size, options.choice)
        users, items, steps, factors = size
        print(
            f"{users:,} × {items:,} × {steps}, {factors} factors, {options.choice}: {result['events']:,.0f} events in "
            f"{result['seconds']:.1f} s ({result['cpu']:.1f} s of one core), {result['peak_mib']:.0f} MiB",
            flush=True,
        )
    told = f"draw_seconds={result['seconds']:.2f} cpu_seconds={result['cpu']:.2f}"
    print(f"{told} peak_mib={result['peak_mib']:.0f}")


if __name__ == "__main__":
    main()
