"""`unveil theory`: which losses are unbiased, under which assumptions, and what they would learn.

Exact over every log of a tiny world (one cell), by drawn logs of a larger one (a cell for each choice model), and down
to what minimises each loss (a cell for each severity).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import model_validator

from unveil.errors import UnveilError
from unveil.report.page import Cell as TableCell
from unveil.report.page import Column, Figure, KeyFigure, Table, number
from unveil.report.plots import Line, Scale, canvas, colour_of, lines
from unveil.report.svg import INK, MUTED, Drawing, themed
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.choice import CHOICES
from unveil.simulation.world import World
from unveil.studies.engine import Answer, Cell, Context, Study
from unveil.studies.theory_claims import (
    ALL,
    CHANCE_EXPOSED,
    EXPOSED,
    SEVERITIES,
    TOLERANCE,
    Chooser,
    Example,
    Finding,
    Minimiser,
    Propositions,
    by_choice,
    choosers,
    example,
    minimisers,
)
from unveil.studies.theory_loss import (
    CORRECTED,
    IDEAL,
    IPS,
    ITPS,
    LEVEL,
    NAIVE,
    Compared,
    Estimated,
    MonteCarlo,
    Scores,
)
from unveil.studies.theory_world import DenseWorld, Tiny

#: Beyond this hardly anything is ever shown, and 1/θ leaves single precision.
MOST_SEVERE = 10.0
_COLOURS = {NAIVE.label: 0, IPS.label: 1, ITPS.label: 2, IDEAL.label: 3, CORRECTED.label: 4}
_CHOICES = {
    "rational_all": "the best of all",
    "rational_exposed": "the best of the exposed",
    "categorical_all": "one of all by chance",
    "categorical_exposed": "one of the exposed by chance",
}
#: Columns of results.csv.
_COLUMNS = ("part", "claim", "setting", "choice", "relevance", "estimator", "severity", "quantity", "value", "low",
            "high", "formula", "verdict")  # fmt: skip


class Theory(Study):
    """The paper's propositions, and what follows for training."""

    name: ClassVar[str] = "theory"
    title: ClassVar[str] = "Which losses are unbiased, under which assumptions, and what do they learn?"
    template: ClassVar[str] = "theory.md.j2"
    extent: ClassVar[frozenset[str]] = frozenset()
    severity: float = 1.0
    seed: int = 0
    users: int = 200
    items: int = 100
    steps: int = 20
    draws: int = 100  # logs for each choice model
    logs: int = 8  # logs from which minimisers are fitted, for each severity

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        if not 0 < self.severity <= MOST_SEVERE:
            expected = f"a number above 0, at most {MOST_SEVERE:g}"
            raise UnveilError("the severity is out of range", found=self.severity, expected=expected)
        if min(self.draws, self.logs) < 2:
            raise UnveilError("an interval needs draws", found=min(self.draws, self.logs), expected="at least 2")
        return self

    def world(self, severity: float | None = None) -> World:
        """The larger world."""
        spec = WorldSpec(users=self.users, items=self.items, steps=self.steps, severity=severity or self.severity)
        return World.builtin(spec, self.seed)

    def cells(self) -> Iterable[Cell]:
        """Drawn logs first: they take longest."""
        for choice in CHOICES:
            yield Cell(f"draws-{choice}", {"choice": choice, "severity": self.severity}, self.draws, "run_draws")
        for severity in SEVERITIES:
            at = {"choice": EXPOSED, "severity": severity}
            yield Cell(f"minima-p{severity:g}", at, self.draws / 3, "run_minima")
        yield Cell("exact", {}, self.draws / 3, "run_exact")

    def run_draws(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """The bias of each loss over drawn logs of the larger world, for one choice model."""
        dense = DenseWorld(self.world())
        drawn = MonteCarlo(dense, Scores.informed(dense, self.seed), self.draws, self.seed)
        rows = drawn.run(cell.at["choice"], len(CHOICES), context.on_progress)
        return {"slots": len(dense), "estimated": [asdict(row) for row in rows]}

    def run_minima(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """What minimises each loss at one severity."""
        found = minimisers(self.world(cell.at["severity"]), EXPOSED, self.logs, self.seed)
        return {"minimisers": [asdict(row) for row in found]}

    def run_exact(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        """All that is computed without drawing a log."""
        propositions = Propositions(Tiny(self.severity, self.seed))
        return {
            "claims": [asdict(each) for each in propositions.findings()],
            "choosers": [asdict(each) for each in choosers(propositions.moving)],
            "distances": by_choice(self.world(), list(CHOICES)),
            "example": asdict(example(propositions.moving.dense.world, EXPOSED)),
        }

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """Biases over drawn logs and of the minima's losses."""
        for row in record.get("estimated", []):
            yield {"estimator": row["estimator"], "protocol": "drawn logs", "metric": "bias", "value": row["mean"]}
        for row in record.get("minimisers", []):
            for metric in ("slot_first", "user_first", "log_first"):
                yield {"estimator": row["estimator"], "protocol": "minimum", "metric": metric, "value": row[metric]}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """All that was computed."""
        found = Found(answer)
        return {
            "rules": {"tolerance": TOLERANCE, "level_of_all_intervals_together": LEVEL},
            "findings": [
                {**asdict(each), "bias": each.bias, "found": each.found, "holds": each.holds, "verdict": each.verdict}
                for each in found.claims
            ],
            "choices": [asdict(each) for each in found.choosers],
            "monte_carlo": [{**asdict(row), "agrees": row.agrees, "found": row.found} for row in found.estimated],
            "minimisers": [asdict(row) for row in found.minimisers],
            "distances": found.distances,
            "example": asdict(found.example),
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """What sentences are chosen by."""
        found = Found(answer)
        free = [row.bias[ITPS.label] for row in found.choosers if not row.depends_on_exposure]
        bound = [row.bias[ITPS.label] for row in found.choosers if row.depends_on_exposure]
        compared = [row for row in found.estimated if row.agrees is not None]
        mild, severe = (found.at(severity) for severity in (SEVERITIES[0], SEVERITIES[-1]))
        one_log = [(found.at(severity)[ITPS.label], found.at(severity)[NAIVE.label]) for severity in SEVERITIES]
        return {
            "relative": relative,
            "slots": found.slots,
            "claims": found.claims,
            "free_worst": max(map(abs, free)),
            "tolerance": TOLERANCE,
            "bound": bound,
            "compared": compared,
            "wrong": [row for row in compared if not row.agrees],
            "level": LEVEL,
            "naive_has_ideal_minimum": found.distances.get(ALL, {}).get(NAIVE.label, 1.0) <= TOLERANCE,
            "chance": found.distances.get(CHANCE_EXPOSED, {}),
            "chance_bias": found.bias(CHANCE_EXPOSED, ITPS.label),
            "mild": mild,
            "severe": severe,
            "corrected_is_itps": abs(mild[CORRECTED.label].slot_distance - mild[ITPS.label].slot_distance) <= TOLERANCE,
            "one_log": [(itps, naive, _position(itps, naive)) for itps, naive in one_log],
            "weights_cost": all(i.user_first - i.log_first > n.user_first - n.log_first for i, n in one_log),
            "choices": list(dict.fromkeys(row.choice for row in found.estimated)),
            "choice_name": choice_name,
        }

    def tables(self, answer: Answer) -> Mapping[str, Table]:
        """Claims, choices, drawn logs by choice, an example, distances and minima."""
        found = Found(answer)
        drawn = dict.fromkeys(row.choice for row in found.estimated)
        return {
            "claims": _claims(found),
            "choosers": _choosers(found),
            **{f"drawn-{choice}": _drawn(found, choice) for choice in drawn},
            "example": _example(found),
            "distances": _distances(found),
            "minima": _minima(found),
        }

    def figures(self, answer: Answer) -> Mapping[str, Figure]:
        """The biases, and how often the favourite is found."""
        found = Found(answer)
        shown = [row for row in found.estimated if row.estimator in (NAIVE.label, IPS.label, ITPS.label)]
        said = ", ".join(f"{row.estimator} {relative(row.mean)} ({choice_name(row.choice)})" for row in shown)
        return {
            "biases": Figure("", _dots(shown), f"Relative bias by choice model: {said}."),
            "first-limit": _first(found, "user_first"),
            "first-one-log": _first(found, "log_first"),
        }

    def key_figures(self, answer: Answer) -> Sequence[KeyFigure]:
        """How many claims hold, and the bias of ITPS for two kinds of user."""
        found = Found(answer)
        holds = sum(each.holds for each in found.claims)
        biases = [(choice, found.bias(choice, ITPS.label)) for choice in (ALL, EXPOSED)]
        return [
            KeyFigure(f"{holds} of {len(found.claims)}", "claims hold, computed exactly"),
            *(
                KeyFigure(relative(bias), f"bias of ITPS if the user chooses {choice_name(choice)}")
                for choice, bias in biases
                if bias is not None
            ),
        ]

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        """Every number with what it is a number of."""
        return [{name: row.get(name) for name in _COLUMNS} for row in Found(answer).rows()]


@dataclass(frozen=True)
class Found:
    """The records of the cells, as the objects that they were."""

    answer: Answer

    @cached_property
    def exact(self) -> Mapping[str, Any]:
        """The record of the exact cell."""
        return self.answer.records["exact"]

    @cached_property
    def claims(self) -> list[Finding]:
        """Every claim with what was computed."""
        return [Finding(**{**each, "compared": Compared(**each["compared"])}) for each in self.exact["claims"]]

    @cached_property
    def choosers(self) -> list[Chooser]:
        """Every choice model with the bias of each loss."""
        return [Chooser(**each) for each in self.exact["choosers"]]

    @cached_property
    def example(self) -> Example:
        """One slot, item by item."""
        return Example(**self.exact["example"])

    @property
    def distances(self) -> Mapping[str, Mapping[str, float]]:
        """By choice model and loss."""
        distances: Mapping[str, Mapping[str, float]] = self.exact["distances"]
        return distances

    @cached_property
    def estimated(self) -> list[Estimated]:
        """Of all choice models."""
        return [Estimated(**row) for c in CHOICES for row in self.answer.records[f"draws-{c}"]["estimated"]]

    @cached_property
    def minimisers(self) -> list[Minimiser]:
        """At all severities."""
        return [Minimiser(**row) for p in SEVERITIES for row in self.answer.records[f"minima-p{p:g}"]["minimisers"]]

    @property
    def slots(self) -> int:
        """User-step pairs of the larger world."""
        return int(self.answer.records[f"draws-{next(iter(CHOICES))}"]["slots"])

    def at(self, severity: float) -> dict[str, Minimiser]:
        """The minima at one severity, by loss."""
        return {row.estimator: row for row in self.minimisers if row.severity == severity}

    def bias(self, choice: str, estimator: str) -> float | None:
        """Of a loss on the larger world: by formula, or else over drawn logs."""
        found = [row for row in self.estimated if (row.choice, row.estimator) == (choice, estimator)]
        return (found[0].mean if found[0].formula is None else found[0].formula) if found else None

    def rows(self) -> Iterable[dict[str, Any]]:
        """Every number, for results.csv."""
        bias = {"severity": self.answer.study.severity, "quantity": "relative bias"}
        for each in self.claims:
            claim = {"claim": each.claim, "setting": each.setting, "value": each.bias, "formula": each.formula}
            yield {"part": f"claim: {each.topic}", **bias, **claim, "verdict": each.verdict}
        for chooser in self.choosers:
            for estimator, value in chooser.bias.items():
                where = {"choice": chooser.choice, "relevance": chooser.relevance, "estimator": estimator}
                yield {"part": "choice", **bias, **where, "value": value}
        for row in self.estimated:
            yield {"part": "drawn logs", **bias, **asdict(row), "value": row.mean, "verdict": row.found}
        for minimum in self.minimisers:
            for name in ("bias", "slot_distance", "slot_first", "user_distance", "user_first", "log_first"):
                if (value := getattr(minimum, name)) is not None:
                    bounds = {"low": minimum.low, "high": minimum.high} if name == "log_first" else {}
                    where = {"estimator": minimum.estimator, "quantity": name}
                    yield {"part": "minimiser", "severity": minimum.severity, **where, "value": value, **bounds}


def choice_name(choice: str) -> str:
    """How the user chooses, in words; plug-ins go by their own names."""
    return _CHOICES.get(choice, choice)


def relative(bias: float | None) -> str:
    """+37%, −4.2%; within rounding 0."""
    if bias is None:
        return "–"
    if abs(bias) <= TOLERANCE:
        return "0"
    digits = 0 if abs(bias) >= 0.1 else 1 if abs(bias) >= 0.01 else 3
    return f"{bias:+.{digits}%}".replace("-", "−")


def _position(one: Minimiser, other: Minimiser) -> str:
    """What two intervals allow to say."""
    if one.low > other.high:
        return "above"
    return "below" if one.high < other.low else "not distinguishable from"


def _bias(value: float | None) -> TableCell | str:
    return "–" if value is None else TableCell(relative(value), value)


def _percent(value: float) -> TableCell:
    return TableCell(f"{value:.0%}", value)


def _claims(found: Found) -> Table:
    rows: list[list[TableCell | str]] = [
        [f"{each.topic}: {each.claim}, {each.setting}", _bias(each.bias), _bias(each.formula), each.verdict]
        for each in found.claims
    ]
    columns = [Column("claim"), Column("bias", True), Column("formula", True), Column("verdict")]
    return Table("", columns, rows, sortable=False)


def _choosers(found: Found) -> Table:
    losses = list(found.choosers[0].bias)
    rows: list[list[TableCell | str]] = []
    for each in found.choosers:
        error = "–" if each.formula_error is None else TableCell(f"{each.formula_error:.0e}", each.formula_error)
        depends = "yes" if each.depends_on_exposure else "no"
        biases = [_bias(each.bias[loss]) for loss in losses]
        rows.append([choice_name(each.choice), each.relevance, *biases, depends, error])
    middle = [Column(loss, True) for loss in losses]
    last = [Column("depends on exposure"), Column("formula off", True)]
    return Table("", [Column("the user chooses"), Column("R"), *middle, *last], rows, sortable=False)


def _drawn(found: Found, choice: str) -> Table:
    agrees = {None: "–", True: "yes", False: "no"}
    rows: list[list[TableCell | str]] = [
        [
            row.estimator,
            _bias(row.formula),
            _bias(row.mean),
            f"[{row.low:+.1%}, {row.high:+.1%}]".replace("-", "−"),
            TableCell(f"±{row.spread:.1%}", row.spread),
            row.found,
            agrees[row.agrees],
        ]
        for row in found.estimated
        if row.choice == choice
    ]
    middle = [Column(title, True) for title in ("formula", "bias", "interval")]
    last = [Column("one log", True, "spread"), Column("found"), Column("agrees")]
    return Table("", [Column("loss"), *middle, *last], rows, sortable=False)


def _example(found: Found) -> Table:
    slot = found.example
    per_item = [slot.gamma, slot.theta, slot.taken, *slot.learnt.values()]
    rows: list[list[TableCell | str]] = [
        [item, *(number(values[n], 3) for values in per_item)] for n, item in enumerate(slot.items)
    ]
    columns = [Column("item"), *(Column(title, True) for title in ("γ", "θ", "chosen", *slot.learnt))]
    return Table("", columns, rows, sortable=False)


def _distances(found: Found) -> Table:
    losses = list(next(iter(found.distances.values())))
    rows: list[list[TableCell | str]] = [
        [choice_name(choice), *(number(row[loss], 3) for loss in losses)] for choice, row in found.distances.items()
    ]
    return Table("", [Column("the user chooses"), *(Column(loss, True) for loss in losses)], rows, sortable=False)


def _minima(found: Found) -> Table:
    rows: list[list[TableCell | str]] = [
        [
            number(row.severity, 0),
            row.estimator,
            _bias(row.bias),
            number(row.slot_distance),
            _percent(row.slot_first),
            number(row.user_distance),
            _percent(row.user_first),
            TableCell(f"{row.log_first:.0%} [{row.low:.0%}, {row.high:.0%}]", row.log_first),
        ]
        for row in found.minimisers
    ]
    kinds = [("bias", "of the loss"), ("distance", "slot"), ("first", "slot"), ("distance", "user"), ("first", "user")]
    columns = [Column("p", True), Column("loss"), *(Column(title, True, about) for title, about in kinds)]
    return Table("", [*columns, Column("first", True, "one log")], rows, sortable=False)


def _dots(rows: Sequence[Estimated]) -> Drawing:
    """Means over drawn logs with their intervals; circles are the closed form."""
    with canvas("bias, relative to the ideal loss", "", (6.4, 0.75 + 0.26 * len(rows))) as on:
        on.axes.grid(visible=False, axis="y")
        on.axes.axvline(0, color=INK, linewidth=0.9)
        for place, row in enumerate(rows):
            colour = colour_of(_COLOURS[row.estimator])
            on.axes.plot([row.low, row.high], [place, place], color=colour, linewidth=2.2)
            on.axes.scatter([row.mean], [place], s=26, color=colour, linewidths=0, zorder=3).set_gid(f"dot{place}")
            if row.formula is not None:
                on.axes.scatter([row.formula], [place], s=70, facecolors="none", edgecolors=MUTED, linewidths=0.9)
        labels = [f"{row.estimator}, {choice_name(row.choice)}" for row in rows]
        on.axes.set_yticks(range(len(rows)), labels, color=INK)
        on.axes.set_ylim(len(rows) - 0.4, -0.6)
        on.axes.xaxis.set_major_formatter(lambda value, _: f"{value:+.0%}".replace("-", "−"))
        titles = {
            f"dot{place}": [f"{label}: {relative(row.mean)}"]
            for place, (label, row) in enumerate(zip(labels, rows, strict=True))
        }
        return themed(on.figure, "biases", titles)


def _first(found: Found, quantity: str) -> Figure:
    """How often the favourite has the highest probability, a line for each loss."""
    value: Callable[[Minimiser], float] = lambda row: float(getattr(row, quantity))  # noqa: E731
    drawn = {}
    for label in dict.fromkeys(row.estimator for row in found.minimisers):
        rows = [found.at(severity)[label] for severity in SEVERITIES]
        titles = [f"{label}, severity {row.severity:g}: {value(row):.1%}" for row in rows]
        drawn[label] = Line(list(SEVERITIES), [value(row) for row in rows], titles, _COLOURS[label])
    scale = Scale(percent=(False, True), top=1.0, ticks={severity: f"{severity:g}" for severity in SEVERITIES})
    said = ", ".join(f"{row.estimator} {value(row):.0%} at {row.severity:g}" for row in found.minimisers)
    drawing = lines(drawn, ("severity p", "favourite ranked first"), quantity.replace("_", "-"), scale)
    return Figure("", drawing, f"Share of slots at which the favourite is ranked first, by severity: {said}.")
