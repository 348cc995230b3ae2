"""All figures of one log, what they come to, and what to do. The words are in `report/templates/audit.md.j2`."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.audit.baselines import BASELINES, Score, baselines
from unveil.audit.checks import Cold, Concentration, Leakage, Repeats, cold, concentration, leakage, repeats
from unveil.audit.exposure import CLIPPED, EXPONENTS, HALF_WIDTH, Cost, Costs, Exposure, costs, exposure
from unveil.audit.motion import Motion, along_calendar, along_histories
from unveil.audit.order import Order, order
from unveil.audit.timing import first_interactions
from unveil.data.describe import TIE_RULE, Description, describe
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split, leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.report.prose import Prose, bold

Progress = Callable[[int, int], None]

LEAVE_ONE_OUT, TEMPORAL = "leave-one-out", "temporal"  # the splits that baselines are evaluated on, as people call them
SPLIT_NAMES = {LEAVE_ONE_OUT: "leave-one-out", TEMPORAL: "temporal split"}
#: Estimators whose weights are looked at, as people call them.
WEIGHTED = {"ips": "IPS", "itps": "ITPS", "itps-smoothed": "ITPS, smoothed"}
_PROTOCOLS = {"full": "full ranking", "uniform": "uniform negatives", "popular": "popular negatives"}

#: Shares above which ties, repeats and later training interactions are worth a word.
_TIED, _TIED_LAST, _REPEATED, _LATER = 0.05, 0.01, 0.01, 0.01
ENOUGH = 0.2  # weights should leave at least this share of the interactions, in effect


@dataclass(frozen=True)
class Advice:
    """One thing to do or to know, with its reason and the figure it rests on."""

    about: str  # the figure's name in the audit: order, leakage, …
    title: str  # what to do or to know
    figure: str  # the figure, as people write it
    of: str  # what it is a figure of
    reason: str
    warning: bool = False  # whether results would mislead without it


@dataclass(frozen=True)
class Audit:
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
        wanted = (split, baseline, metric, protocol.partition("-")[0])
        found = ((s, (s.split, s.baseline, s.metric, s.protocol.partition("-")[0])) for s in self.baselines)
        return next((score for score, names in found if names == wanted), None)

    @property
    def motions(self) -> dict[str, Motion]:
        along = {"user histories": self.histories, "the calendar": self.calendar}
        return {name: motion for name, motion in along.items() if motion is not None}

    @property
    def verdict(self) -> str:
        return self.prose().line("verdict")

    @property
    def advice(self) -> tuple[Advice, ...]:
        """All that applies to this log, warnings first."""
        every, paragraphs = [], iter(self.prose().paragraphs("advice"))
        for heading, figure, reason in zip(paragraphs, paragraphs, paragraphs, strict=True):
            about, _, title = heading.removeprefix("### ").partition(" | ")
            warns = title.startswith("Warning: ")
            every.append(Advice(about, title.removeprefix("Warning: "), *bold(figure), reason, warns))
        return tuple(sorted(every, key=lambda each: not each.warning))

    def prose(self, **more: Any) -> Prose:
        along = self.motions
        rules = {"split_name": SPLIT_NAMES, "tie_rule": TIE_RULE, "weighted": WEIGHTED, "half_width": HALF_WIDTH}
        rules |= {"enough": ENOUGH, "clipped": CLIPPED, "exponents": EXPONENTS}
        facts = {
            "found": self,
            "along": along,
            "motion": next(iter(along.values()), None),
            "moving": {name: motion.rejecting for name, motion in along.items() if motion.rejecting.holm},
            "fill": max(0, 4 - len(along) - (self.order is not None) - (self.leakage is not None)),
            "least": min((self.costs.of("ips"), self.costs.of("itps")), key=lambda cost: cost.ess_share),
            "strongest": {name: _strongest(self.costs, name) for name in ("ips", "itps")},
        }
        return Prose(["audit.md.j2"], {**vars(self), **rules, **facts, **_evaluation(self), **more})


def audit(log: Interactions, *, seed: int = 0, progress: Progress | None = None) -> Audit:
    """Look at a log without training anything. Each figure has randomness of its own: none depends on the others."""
    sequences = Sequences.of(log)
    described = describe(log, sequences)  # a log without events is an error
    first = first_interactions(sequences) if described.repeats else sequences
    splits: dict[str, Split] = {}
    for name, split in ((LEAVE_ONE_OUT, leave_one_out), (TEMPORAL, temporal_split)):
        with suppress(UnveilError):  # histories may be too short, or there may be no clock
            splits |= {name: parts} if len((parts := split(sequences)).test) else {}
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
    return Audit(log=described, **done)


def _evaluation(found: Audit) -> dict[str, Any]:
    later = 0.0 if found.leakage is None else found.leakage.later
    ties, cold = found.log.ties, found.cold
    cold_split = TEMPORAL if TEMPORAL in cold.splits else LEAVE_ONE_OUT
    cases = cold.splits.get(cold_split)
    split = TEMPORAL if found.score(TEMPORAL, BASELINES[0], "full") else LEAVE_ONE_OUT
    scores = [found.score(split, name, "full") for name in BASELINES]
    protocols = {name: found.score(LEAVE_ONE_OUT, BASELINES[0], kind, "Recall@10") for kind, name in _PROTOCOLS.items()}
    repeated = found.repeats.share > _REPEATED
    return {
        "leaks": later > _LATER,
        "tied": ties is not None and (ties.share > _TIED or ties.last_share > _TIED_LAST),
        "repeated": repeated,
        "duplicated": repeated and (found.repeats.same_moment or 0) > found.repeats.events / 2,
        "baseline_scores": [score for score in scores if score is not None],
        "protocol_scores": {name: score for name, score in protocols.items() if score is not None},
        "cold_split": cold_split,
        "cold_cases": cases if cases is not None and max(cases.items, cases.users) > 0.05 else None,
    }


def _strongest(costs: Costs, estimator: str) -> Cost | None:
    """Of the settings that leave enough the highest exponent, and of those the lowest clip."""
    fit = [each for each in costs.settings if each.estimator == estimator and each.ess_share >= ENOUGH]
    return max(fit, key=lambda each: (each.exponent, -each.clip), default=None)
