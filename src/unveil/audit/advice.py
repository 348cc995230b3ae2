"""All figures of one log, what they come to, and what to do; and the audit as files: a page for people, its figures as
JSON beside it, and the plots in a folder. The words are in `report/templates/audit.md.j2`."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unveil.audit.baselines import BASELINES, Score, baselines
from unveil.audit.checks import Cold, Concentration, Leakage, Repeats, cold, concentration, leakage, repeats
from unveil.audit.evidence import Evidence, evidence
from unveil.audit.exposure import CLIPPED, EXPONENTS, HALF_WIDTH, Cost, Costs, Exposure, costs, exposure
from unveil.audit.identification import Identification, identification
from unveil.audit.motion import Motion, along_calendar, along_histories
from unveil.audit.order import Order, order
from unveil.audit.timing import first_interactions
from unveil.data.describe import TIE_RULE, Description, describe
from unveil.data.interactions import Interactions, Sequences
from unveil.data.readers.database import shown
from unveil.data.splits import Split, leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.files import versions, write_json
from unveil.report.charts import Dot, intervals, lorenz_figure
from unveil.report.page import Code, Column, Figure, Page, Point, Table, count, percent, write_page
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import Prose, bold, estimate
from unveil.report.svg import check_page_path

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
    identification: Identification  # whether exposure and appeal can be told apart
    evidence: Evidence  # how many random items would decide

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
        shared = {**vars(self), **rules, **facts, **_evaluation(self), "path": "LOG"}
        return Prose(["audit.md.j2"], shared | more)


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
        "identification": lambda rng: identification(log),
        "evidence": lambda rng: evidence(log),
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


_EVERY = 5  # points of the Lorenz curve between two marks


def check_output(page: Path, *, overwrite: bool) -> None:
    """Before any work is done: an HTML file is to be written, and nothing is to be overwritten."""
    check_page_path(page, [beside(page)], what="the audit", overwrite=overwrite)


def beside(page: Path) -> Path:
    """audit.json beside audit.html."""
    return page.with_suffix(".json")


def write(
    found: Audit, log: Interactions, titles: Sequence[str], source: str, page: Path, command: Sequence[str]
) -> None:
    """Both files and the plots, each whole or not at all; the page last. Passwords of database URLs are left out."""
    line = shlex.join(map(shown, command))
    write_json(beside(page), results(found, log, line))
    write_page(audit_page(found, titles, shown(source), line), page)


def results(found: Audit, log: Interactions, command: str) -> dict[str, Any]:
    """Every figure under the names of `Audit`, items by their own ids, and what it was made with."""
    figures = {**asdict(found), "verdict": found.verdict, "advice": [asdict(each) for each in found.advice]}
    for name in ("histories", "calendar"):
        for mover in (figures[name] or {}).get("movers", ()):
            mover["item"] = log.items[mover["item"]]
    return {"audit": 1, "command": command, "versions": versions(), "fingerprint": log.fingerprint(), **figures}


def audit_page(found: Audit, titles: Sequence[str], path: str, command: str) -> Page:
    """The whole page; `titles` has one for each item, `path` is where the log is."""
    parts: dict[str, Any] = {
        "advice": [Point(each.title, each.figure, each.of, each.reason, each.warning) for each in found.advice],
        "command": Code(command),
        **_concentration(found.concentration.lorenz),
        **{f"baselines-{split}": _scores(found, split) for split in {score.split for score in found.baselines}},
        **{f"ess{nth_clip}": _costs(found, nth_clip) for nth_clip in (0, 1)},
    }
    if along := found.motions:
        parts["heads"] = _heads(along)
    parts |= {f"movers-{name}": _movers(motion, name, titles) for name, motion in along.items() if motion.movers}
    return found.prose(name=Path(path).name, path=path, verdict=found.verdict, advice=found.advice).page(parts)


def _concentration(lorenz: Sequence[float]) -> dict[str, Figure]:
    head = [1 - value for value in lorenz[::-1]][:21]
    axes = ("share of the items, most popular first", "share of the interactions")
    line = Line([place / 100 for place in range(len(head))], head, 1)
    least = lorenz_figure({"": np.array(lorenz[::_EVERY])}, "the interactions", "lorenz")
    return {"lorenz": least, "head": line_figure({"": line}, axes, "head", Scale((True, True), top=1.0))}


def _heads(along: Mapping[str, Motion]) -> Figure:
    curves = {f"along {name.split()[-1]}": motion.heads.shared for name, motion in along.items()}
    curves["random periods"] = list(along.values())[-1].heads.chance
    drawn = {
        name: Line(list(range(1, len(shared) + 1)), shared, place if place < len(along) else None)
        for place, (name, shared) in enumerate(curves.items())
    }
    return line_figure(drawn, ("tenths apart", "most popular items in common"), "heads", Scale((False, True), top=1.0))


def _movers(motion: Motion, name: str, titles: Sequence[str]) -> Figure:
    drawn: dict[str, Line] = {}
    tenths = list(range(1, motion.periods + 1))
    for place, mover in enumerate(motion.movers):
        title = titles[mover.item]
        if same := sum(other == title or other.startswith(f"{title} #") for other in drawn):
            title = f"{title} #{same + 1}"
        drawn[title] = Line(tenths, mover.shares, place)
    rows = [[count(n), *(percent(line.y[n - 1], 2) for line in drawn.values())] for n in tenths]
    columns = [Column("tenth", True), *(Column(title, True) for title in drawn)]
    table = Table(f"Share of the interactions along {name}", columns, rows, sortable=False)
    axes = (f"tenth of {'a history' if name == 'user histories' else 'the log'}", "share of the interactions")
    return line_figure(drawn, axes, f"movers-{name.split()[-1]}", Scale((False, True)), table)


def _scores(found: Audit, split: str) -> Figure:
    scores = [each for each in found.baselines if each.metric == "NDCG@10"]
    period = dict(zip(BASELINES, ("all time", "last period"), strict=True))
    dots = []
    for each in sorted(scores, key=lambda each: (each.protocol, each.baseline != BASELINES[0])):
        if each.split == split:
            name = f"{each.protocol}, {period[each.baseline]}"
            title = f"{each.baseline}, {each.protocol}: {estimate(each)}"
            dots.append(Dot(name, each.mean, each.low, each.high, BASELINES.index(each.baseline), title))
    return intervals(dots, "NDCG@10", max(1e-3, *(each.high for each in scores)), f"baselines-{split}")


def _costs(found: Audit, nth_clip: int) -> Figure:
    drawn = {}
    for place, (estimator, name) in enumerate(WEIGHTED.items(), 1):
        settings = [found.costs.of(estimator, exponent, nth_clip) for exponent in reversed(EXPONENTS)]
        hover = ["exponent 0: equal weights, 100%"]
        for cost in settings:
            kept = f"{cost.ess_share:.1%}, largest weight {cost.largest_share:.2g} of all"
            hover.append(f"{name}, exponent {cost.exponent:g}: {kept}")
        shares = [1.0, *(each.ess_share for each in settings)]
        drawn[name] = Line([0.0, *(each.exponent for each in settings)], shares, place, titles=hover)
    axes = ("exponent of the weights", "effective share of the interactions")
    return line_figure(drawn, axes, f"ess{nth_clip}", Scale((False, True), top=1.05))
