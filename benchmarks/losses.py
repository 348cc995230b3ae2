"""What each estimator costs: the loss of one batch with its gradients, against naive, one thread, in turns.

    python -m benchmarks.losses [--items 3400] [--slots 6400] [--turns 5] [--estimators corrected,rational] [--whole]

The network before it costs the same for all and is left out; so is what some learn from the log before training. Truth
comes from a built-in world. With --whole what an estimator has of every item is made for the whole batch first, which
is what it is spared. Peaks are what the loss holds beyond what was held before it. Prints, last, one line with
the ratios of the quickest turns: `corrected_vs_naive=X …`, and the largest of the peaks.
"""

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from benchmarks.memory import own_peak_mib, reset_peak
from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.estimators.base import ESTIMATORS, Estimator, Signal, build, cloze_risk, events
from unveil.propensity.build import build as propensity
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.world import World

WIDTH, MIB = 64, 1 << 20


def estimators(world: World, names: list[str]) -> tuple[dict[str, Estimator], Slots]:
    """Each of them with what it needs, and the training events of a log to use them on."""
    log = world.log(np.random.default_rng(0), ratings_noise=0.5, impressions=1.0)
    train = leave_one_out(Sequences.of(log)).train
    known = {"static": "known-static", "temporal": "known-temporal"}
    theta = {kind: propensity(name, {}, train, world=world) for kind, name in known.items()}
    made = {
        name: build(name, {}, propensity=theta.get(ESTIMATORS[name].needs), world=world, train=train, log=log)
        for name in names
    }
    return made, events(train)


def one_batch(estimator: Estimator, slots: Slots, parts: list[torch.Tensor], *, whole: bool) -> float:
    """Seconds of CPU of the signal, the loss and its gradients."""
    began = time.process_time()
    h_MD, table_VD, bias_V = parts
    signal = at_hand(estimator(slots)) if whole else estimator(slots)
    torch.autograd.grad(cloze_risk(h_MD, table_VD, bias_V, signal), parts)
    return time.process_time() - began


def at_hand(signal: Signal) -> Signal:
    """The same signal with its tables made whole."""
    tables = {name: getattr(signal, name) for name in ("offset_MV", "rival_MV", "imputed_MV", "theta_MV")}
    return replace(signal, **{name: table[:] for name, table in tables.items() if table is not None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=3400)
    parser.add_argument("--slots", type=int, default=6400)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--estimators", default=",".join(name for name in ESTIMATORS if name != "naive"))
    parser.add_argument("--whole", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    world = World.builtin(WorldSpec(users=800, items=asked.items, steps=50))
    made, every = estimators(world, ["naive", *asked.estimators.split(",")])
    rng = torch.Generator().manual_seed(0)
    slots = every.at(torch.randint(len(every), (asked.slots,), generator=rng))
    shapes = ((asked.slots, WIDTH), (asked.items, WIDTH), (asked.items,))
    parts = [(torch.randn(shape, generator=rng) / 8).requires_grad_() for shape in shapes]
    seconds: dict[str, list[float]] = {name: [] for name in made}
    peak = dict.fromkeys(made, 0.0)
    for _ in range(asked.turns):
        for name, estimator in made.items():
            held = reset_peak()
            seconds[name].append(one_batch(estimator, slots, parts, whole=asked.whole))
            peak[name] = max(peak[name], own_peak_mib() - held)
    table = asked.slots * asked.items * 4 / MIB
    print(f"{asked.slots:,} slots, {asked.items:,} items: one number for each of both is {table:,.0f} MiB")
    quickest = {name: min(taken) for name, taken in seconds.items()}
    for name in made:
        times = quickest[name] / quickest["naive"]
        print(f"{name:18} {quickest[name]:6.3f} s  {times:5.2f} × naive  {peak[name]:5.0f} MiB", flush=True)
    ratios = [f"{name}_vs_naive={quickest[name] / quickest['naive']:.2f}" for name in made if name != "naive"]
    print(" ".join([*ratios, f"peak_mib={max(peak.values()):.0f}"]))


if __name__ == "__main__":
    main()
