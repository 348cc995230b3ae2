"""All figures of one log, what they come to, and what to do. The words are in `report/templates/audit.md.j2`."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from unveil.audit.baselines import BASELINES, Score, baselines
from unveil.audit.checks import Cold, Concentration, Leakage, Repeats, cold, concentration, leakage, repeats
from unveil.audit.costs import CLIPPED, EXPONENTS, HALF_WIDTH, Cost, Costs, costs
from unveil.audit.exposure import RARE, Exposure, exposure
from unveil.audit.motion import Motion, along_calendar, along_histories
from unveil.audit.order import Order, order
from unveil.audit.timing import ALPHA, first_interactions
from unveil.data.describe import TIE_RULE, Description, describe
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.report.prose import Prose, bold

Progress = Callable[[int, int], None]

#: The splits that baselines are evaluated on, as people call them.
LEAVE_ONE_OUT, TEMPORAL = "leave-one-out", "temporal"
SPLIT_NAMES = {LEAVE_ONE_OUT: "leave-one-out", TEMPORAL: "temporal split"}
#: Estimators whose weights are looked at, as people call them.
WEIGHTED = {"ips": "IPS", "itps": "ITPS", "itps-smoothed": "ITPS, smoothed"}
_PROTOCOLS = {"full": "full ranking", "uniform": "uniform negatives", "popular": "popular negatives"}
_KEYS = 5

#: A random policy that showed less than this share of the rows is not worth pointing to.
_SOME_RANDOM = 0.001
#: Shares of interactions with next to no chance of being shown above which overlap is poor.
_POOR_OVERLAP = 0.05
#: Shares above which ties, repeats and later training interactions are worth a word; ten times that, a warning.
_TIED, _TIED_LAST, _REPEATED, _LATER = 0.05, 0.01, 0.01, 0.01
#: Weights should leave at least this share of the interactions, in effect; below a quarter of it, a warning.
ENOUGH = 0.2
#: Share of interactions alone with their item at their step above which popularity by step is sparse.
_SPARSE = 0.25
#: A shift of items within histories below this is small, however certain.
_SMALL_SHIFT = 0.02
#: Shares above which the head dominates, items are mostly rare, and cold cases are many.
_HEAVY, _MANY_COLD = 0.5, 0.05


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
        wanted = (split, baseline, metric, protocol.partition("-")[0])
        found = (
            each
            for each in self.baselines
            if (each.split, each.baseline, each.metric, each.protocol.partition("-")[0]) == wanted
        )
        return next(found, None)


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
class Audit(Figures):
    """The figures of a log, what they come to, and what to do."""

    verdict: str
    advice: tuple[Advice, ...]


def audit(log: Interactions, *, seed: int = 0, progress: Progress | None = None) -> Audit:
    """Look at a log without training anything. The same log and seed give the same audit."""
    found = figures(log, seed=seed, progress=progress)
    return Audit(**vars(found), verdict=verdict(found), advice=advice(found))


def figures(log: Interactions, *, seed: int = 0, progress: Progress | None = None) -> Figures:
    """Every figure. Each has randomness of its own, so that none depends on the others."""
    sequences = Sequences.of(log)
    described = describe(log, sequences)  # a log without events is an error
    first = first_interactions(sequences) if described.repeats else sequences
    splits = {}
    for name, split in ((LEAVE_ONE_OUT, leave_one_out), (TEMPORAL, temporal_split)):
        with suppress(UnveilError):  # histories may be too short, or there may be no clock
            splits[name] = split(sequences)
    splits = {name: split for name, split in splits.items() if len(split.test)}
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


def verdict(found: Figures) -> str:
    """Exposure, popularity, order, evaluation: a sentence each."""
    return prose(found).line("verdict")


def advice(found: Figures) -> tuple[Advice, ...]:
    """All that applies to this log, warnings first."""
    every, paragraphs = [], iter(prose(found).paragraphs("advice"))
    for heading, figure, reason in zip(paragraphs, paragraphs, paragraphs, strict=True):
        about, _, title = heading.removeprefix("### ").partition(" | ")
        warns = title.startswith("Warning: ")
        every.append(Advice(about, title.removeprefix("Warning: "), *bold(figure), reason, warns))
    return tuple(sorted(every, key=lambda each: not each.warning))


def motions(found: Figures) -> dict[str, Motion]:
    """How popularity moves, by the clock along which it was tested."""
    along = {"user histories": found.histories, "the calendar": found.calendar}
    return {name: motion for name, motion in along.items() if motion is not None}


def prose(found: Figures, **more: Any) -> Prose:
    """The template, filled by the figures and by what is decided on them."""
    decided = _exposure(found) | _evaluation(found) | _popularity(found) | _weights(found.costs)
    return Prose(["audit.md.j2"], {**vars(found), "split_name": SPLIT_NAMES, "alpha": ALPHA, **decided, **more})


def _exposure(found: Figures) -> dict[str, Any]:
    known = found.exposure
    return {
        "rated": "rating" in known.columns,
        "rare": RARE,
        "poor_overlap": (known.logged_rare or 0) > _POOR_OVERLAP,
        "some_random": (known.randomised or 0) > _SOME_RANDOM,
        "here": lambda column: "yes" if column in known.columns else "no",
    }


def _evaluation(found: Figures) -> dict[str, Any]:
    later = 0.0 if found.leakage is None else found.leakage.later
    ties, cold = found.log.ties, found.cold
    cold_split = TEMPORAL if TEMPORAL in cold.splits else LEAVE_ONE_OUT
    cases = cold.splits.get(cold_split)
    split = TEMPORAL if found.score(TEMPORAL, BASELINES[0], "full") else LEAVE_ONE_OUT
    scores = [found.score(split, name, "full") for name in BASELINES]
    protocols = {name: found.score(LEAVE_ONE_OUT, BASELINES[0], kind, "Recall@10") for kind, name in _PROTOCOLS.items()}
    duplicated = (found.repeats.same_moment or 0) > found.repeats.events / 2
    return {
        "leaks": later > _LATER,
        "leaks_much": later > 10 * _LATER,
        "tie_rule": TIE_RULE,
        "tied": ties is not None and (ties.share > _TIED or ties.last_share > _TIED_LAST),
        "tied_much": ties is not None and ties.last_share > 10 * _TIED_LAST,
        "repeated": found.repeats.share > _REPEATED,
        "duplicated": found.repeats.share > _REPEATED and duplicated,
        "baseline_scores": [score for score in scores if score is not None],
        "protocol_scores": {name: score for name, score in protocols.items() if score is not None},
        "scored_splits": list(dict.fromkeys(score.split for score in found.baselines)),
        "recall": lambda score: found.score(score.split, score.baseline, score.protocol, "Recall@10"),
        "cold_split": cold_split,
        "cold_cases": cases if cases is not None and max(cases.items, cases.users) > _MANY_COLD else None,
        "mostly_rare": cold.rare_items > _HEAVY,
    }


def _popularity(found: Figures) -> dict[str, Any]:
    there = motions(found)
    keys = 1 + len(there) + (found.order is not None) + (found.leakage is not None)
    calendar = found.calendar
    return {
        "along": there,
        "motion": next(iter(there.values()), None),
        "moving": {name: motion.rejecting for name, motion in there.items() if motion.rejecting.holm},
        "changing": any(not motion.mostly_still for motion in there.values()),
        "movers": [name for name, motion in there.items() if motion.movers],
        "small_shift": _SMALL_SHIFT,
        "head_lost": calendar is not None and calendar.heads.shared[-1] < calendar.heads.chance[-1] / 2,
        "kept": lambda share, size: round(share * size),
        "heavy": found.concentration.head["10%"] > _HEAVY,
        "fill": max(0, _KEYS - keys),
    }


def _weights(costs: Costs) -> dict[str, Any]:
    least = min((costs.of("ips"), costs.of("itps")), key=lambda cost: cost.ess_share)
    return {
        "least": least,
        "enough": least.ess_share >= ENOUGH,
        "enough_share": ENOUGH,
        "costly": least.ess_share < ENOUGH / 4,
        "strongest": {name: strongest(costs, name) for name in ("ips", "itps")},
        "sparse": costs.alone > _SPARSE,
        "very_sparse": costs.alone > 2 * _SPARSE,
        "half_width": HALF_WIDTH,
        "clipped": CLIPPED,
        "exponents": EXPONENTS,
        "weighted": WEIGHTED,
    }


def strongest(costs: Costs, estimator: str) -> Cost | None:
    """Of the settings that leave enough the highest exponent, and of those the lowest clip."""
    fit = [each for each in costs.settings if each.estimator == estimator and each.ess_share >= ENOUGH]
    return max(fit, key=lambda each: (each.exponent, -each.clip), default=None)
