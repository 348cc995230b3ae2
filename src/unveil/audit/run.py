"""The audit of a log: every figure, and the advice drawn from them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.audit.advice import Advice, advice, verdict
from unveil.audit.baselines import baselines
from unveil.audit.cold import cold
from unveil.audit.concentration import concentration
from unveil.audit.costs import costs
from unveil.audit.exposure import exposure
from unveil.audit.figures import LEAVE_ONE_OUT, TEMPORAL, Figures
from unveil.audit.leakage import leakage
from unveil.audit.motion import along_calendar, along_histories
from unveil.audit.order import order
from unveil.audit.repeats import repeats
from unveil.audit.takes import first_takes
from unveil.data.describe import describe
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out, temporal_split
from unveil.errors import UnveilError

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Audit(Figures):
    """The figures of a log, what they come to, and what to do."""

    verdict: str
    advice: tuple[Advice, ...]


def audit(log: Interactions, *, seed: int = 0, progress: Progress | None = None) -> Audit:
    """Look at a log without training anything. The same log and seed give the same audit."""
    found = figures(log, seed=seed, progress=progress)
    return Audit(**vars(found), verdict=verdict(found), advice=advice(found))


def figures(log: Interactions, *, seed: int = 0, progress: Progress | None = None) -> Figures:
    """Every figure. Each has randomness of its own, so that none depends on which others are asked for."""
    sequences = Sequences.of(log)
    described = describe(log, sequences)  # refuses a log without events
    takes = first_takes(sequences) if described.repeats else sequences
    splits = _splits(sequences)
    held_out = splits.get(LEAVE_ONE_OUT)
    train = held_out.train if held_out is not None and len(held_out.train) else sequences
    count_V = sequences.count_V
    work: dict[str, Callable[[np.random.Generator], Any]] = {
        "concentration": lambda rng: concentration(count_V),
        "histories": lambda rng: along_histories(takes, rng),
        "calendar": lambda rng: along_calendar(takes, rng),
        "order": lambda rng: order(takes, rng),
        "repeats": lambda rng: repeats(sequences, takes, held_out),
        "leakage": lambda rng: None if held_out is None else leakage(held_out),
        "cold": lambda rng: cold(sequences, splits),
        "baselines": lambda rng: baselines(splits, rng),
        "costs": lambda rng: costs(train),
        "exposure": lambda rng: exposure(log),
    }
    done: dict[str, Any] = {}
    for nth, (name, compute) in enumerate(work.items()):
        done[name] = compute(np.random.default_rng([seed, nth]))
        if progress is not None:
            progress(nth + 1, len(work))
    return Figures(log=described, **done)


def _splits(sequences: Sequences) -> dict[str, Split]:
    """The splits that this log allows: histories may be too short, or there may be no clock."""
    found = {}
    for name, split in ((LEAVE_ONE_OUT, leave_one_out), (TEMPORAL, temporal_split)):
        try:
            found[name] = split(sequences)
        except UnveilError:
            continue
    return {name: split for name, split in found.items() if len(split.test)}
