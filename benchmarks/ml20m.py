"""A log of the shape of ml-20m: read, one epoch of the paper's ITPS, and all items ranked for every user.

    python -m benchmarks.ml20m [--users 138493] [--events 20000000] [--items 18345] [--threads N]
                               [--batches N] [--cases N] [--most-mib 12288]

The log is generated, and everything else happens in a process of its own, whose peak memory is told: reading, the
leave-one-out split, popularity by item and step, the network of the authors' settings for ml-20m (width 256, 3 blocks,
8 heads, length 100, 128 rows, ρ = 0.4, weights θ̂^−0.2), one epoch, and the ranking of the test cases against all
items and against 100 negatives of each kind. `--batches` and `--cases` do only so many and tell what all would take.
Ends with an error where the peak is above `--most-mib`. Prints, last, one line:
`epoch_seconds=A rank_seconds=B peak_mib=C events_per_s=D full_run_hours=E`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

import torch

from benchmarks.generated import KEPT_ITEMS, USERS
from benchmarks.memory import own_peak_mib
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import leave_one_out
from unveil.evaluation.evaluator import Evaluator
from unveil.studies.paper import tuned
from unveil.training.device import seed_epoch
from unveil.training.fit import prepare
from unveil.training.recipe import Recipe
from unveil.training.trainer import Trainer

ROOT = Path(__file__).parents[1]
EVENTS, MOST_MIB = 20_000_000, 12 * 1024
Result = TypeVar("Result")


@dataclass(frozen=True)
class Taken:
    """What the process took; a step that was done in part counts as if it had been done whole."""

    seconds: dict[str, float]
    cpu_seconds: dict[str, float]  # of all threads: others on the machine disturb these less
    peak_mib: dict[str, float]  # up to the end of each step
    events: int  # that an epoch shows to the network
    epochs: int  # of the authors' run
    measured: dict[str, float]  # step → share of it that was done


@dataclass(frozen=True)
class Stopwatch:
    """Seconds of each step, and the peak of memory up to its end; told on the way."""

    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    peak_mib: dict[str, float] = field(default_factory=dict)

    def time(self, name: str, work: Callable[[], Result]) -> Result:
        begun, spent = time.perf_counter(), time.process_time()
        result = work()
        self.seconds[name], self.cpu_seconds[name] = time.perf_counter() - begun, time.process_time() - spent
        self.peak_mib[name] = own_peak_mib()
        print(f"{name}: {self.seconds[name]:.1f} s, {self.peak_mib[name]:.0f} MiB", file=sys.stderr, flush=True)
        return result


def take(file: Path, batches: int | None, cases: int | None) -> Taken:
    """Everything between the file and the ranks, in this process."""
    watch = Stopwatch()
    log = watch.time("read", lambda: Interactions.read(file))
    split = watch.time("split", lambda: leave_one_out(Sequences.of(log)))
    ready = watch.time("prepare", lambda: prepare(split.train, recipe(), log=log))
    steps = min(batches or len(ready.task), len(ready.task))
    watch.time("epoch", lambda: trained(ready, steps))
    asked = slice(min(cases or len(split.test), len(split.test)))
    some = split.test.some(asked)
    test = watch.time(
        "negatives", lambda: Evaluator.of(some, split.whole, split.train, length=ready.model.config.length)
    )
    watch.time("rank", lambda: test.evaluate(ready.model, resamples=1))
    ranked = len(some) / len(split.test)
    share = {"epoch": steps / len(ready.task), "negatives": ranked, "rank": ranked}
    seconds, cpu_seconds = (
        {name: taken / share.get(name, 1.0) for name, taken in each.items()}
        for each in (watch.seconds, watch.cpu_seconds)
    )
    return Taken(seconds, cpu_seconds, watch.peak_mib, len(ready.task.slots), ready.config.epochs, share)


def recipe() -> Recipe:
    """The authors' settings."""
    changes = {"propensity.name": "popularity-temporal", "training.device": "cpu", **tuned("ml-20m", "itps", "paper")}
    return Recipe.preset("paper").changed({"estimator.name": "itps"}).changed(changes)


def trained(trainer: Trainer, steps: int) -> None:
    """So many batches of the first epoch."""
    seed_epoch(trainer.config.seed, 1)
    deque(islice(trainer.steps(1), steps), maxlen=0)


def told(taken: Taken) -> list[str]:
    """In words, and the line of figures last."""
    lines = [
        f"{name}: {seconds:,.1f} s, {taken.cpu_seconds[name]:,.1f} s of CPU{_part(taken.measured.get(name, 1.0))}, "
        f"peak so far {taken.peak_mib[name]:,.0f} MiB"
        for name, seconds in taken.seconds.items()
    ]
    epoch, rank, peak = taken.seconds["epoch"], taken.seconds["rank"], max(taken.peak_mib.values())
    # The authors validate after every epoch: the same scores for as many cases as the ranking.
    hours = (taken.epochs * (epoch + rank) + sum(taken.seconds.values()) - epoch) / 3600
    lines.append(f"a full run: {taken.epochs} epochs, each validated at the cost of a ranking: {hours:,.1f} hours")
    figures = f"epoch_seconds={epoch:.1f} rank_seconds={rank:.1f} peak_mib={peak:.0f}"
    return [*lines, f"{figures} events_per_s={taken.events / epoch:.0f} full_run_hours={hours:.2f}"]


def _part(share: float) -> str:
    return "" if share == 1 else f" (from the {share:.1%} that was done)"


def measured(options: argparse.Namespace, file: Path) -> Taken:
    """The log made and used, each in a process of its own: neither counts what the other held. Progress is shown."""
    write = "import sys; from pathlib import Path; from benchmarks.generated import write_ratings_csv as write; "
    write += "write(Path(sys.argv[1]), events=int(sys.argv[2]), users=int(sys.argv[3]), items=int(sys.argv[4]))"
    size = [str(options.events), str(options.users), str(options.items)]
    subprocess.run([sys.executable, "-c", write, str(file), *size], check=True, cwd=ROOT)
    asked = {name: getattr(options, name) for name in ("threads", "batches", "cases")}
    given = [f"--{name}={value}" for name, value in asked.items() if value is not None]
    command = [sys.executable, "-m", "benchmarks.ml20m", "--take", str(file), *given]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return Taken(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--items", type=int, default=KEPT_ITEMS)
    for name in ("threads", "batches", "cases"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--most-mib", type=float, default=MOST_MIB)
    parser.add_argument("--take", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.take:
        torch.set_num_threads(options.threads or torch.get_num_threads())
        print(json.dumps(asdict(take(options.take, options.batches, options.cases))))
    else:
        with tempfile.TemporaryDirectory() as folder:
            taken = measured(options, Path(folder) / "ratings.csv")
        print(*told(taken), sep="\n")
        if max(taken.peak_mib.values()) > options.most_mib:
            sys.exit(f"the peak is above {options.most_mib:,.0f} MiB")


if __name__ == "__main__":
    main()
