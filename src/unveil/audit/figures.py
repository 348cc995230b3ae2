"""All figures of one log, side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.audit.baselines import Score, baselines
from unveil.audit.checks import Cold, Leakage, Repeats, cold, leakage, repeats
from unveil.audit.concentration import Concentration, concentration
from unveil.audit.costs import Costs, costs
from unveil.audit.exposure import Exposure, exposure
from unveil.audit.motion import Motion, along_calendar, along_histories
from unveil.audit.order import Order, order
from unveil.audit.timing import first_interactions
from unveil.data.describe import Description, describe
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out, temporal_split
from unveil.errors import UnveilError

Progress = Callable[[int, int], None]


#: The splits that baselines are evaluated on.
LEAVE_ONE_OUT, TEMPORAL = "leave-one-out", "temporal"


@dataclass(frozen=True)
class Figures:
    """What a log says; None where it cannot say it, for want of a clock, of events or of columns."""

    log: Description
    concentration: Concentration
    histories: Motion | None  # how popularity moves along users' histories
    calendar: Motion | None  # how it moves along the calendar
    order: Order | None
    repeats: Repeats
    leakage: Leakage | None
    cold: Cold
    baselines: tuple[Score, ...]
    costs: Costs
    exposure: Exposure

    def score(self, split: str, baseline: str, protocol: str, metric: str = "NDCG@10") -> Score | None:
        """One figure of the baselines; a protocol may be given without its number of negatives."""
        wanted = (split, baseline, metric)
        found = [each for each in self.baselines if (each.split, each.baseline, each.metric) == wanted]
        return next((each for each in found if each.protocol.partition("-")[0] == protocol.partition("-")[0]), None)


def figures(log: Interactions, *, seed: int = 0, progress: Progress | None = None) -> Figures:
    """Every figure. Each has randomness of its own, so that none depends on the others."""
    sequences = Sequences.of(log)
    described = describe(log, sequences)  # refuses a log without events
    first = first_interactions(sequences) if described.repeats else sequences
    splits = _splits(sequences)
    held_out = splits.get(LEAVE_ONE_OUT)
    train = held_out.train if held_out is not None and len(held_out.train) else sequences
    count_V = sequences.count_V
    work: dict[str, Callable[[np.random.Generator], Any]] = {
        "concentration": lambda rng: concentration(count_V),
        "histories": lambda rng: along_histories(first, rng),
        "calendar": lambda rng: along_calendar(first, rng),
        "order": lambda rng: order(first, rng),
        "repeats": lambda rng: repeats(sequences, first, held_out),
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
