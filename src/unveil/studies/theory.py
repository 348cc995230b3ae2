"""`unveil theory`: which losses are unbiased, under which assumptions, and what they would learn.

Exact over every log of a tiny world, by drawn logs of a larger one, and down to what minimises each loss.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import model_validator

from unveil.errors import UnveilError
from unveil.report.charts import Dot, intervals
from unveil.report.names import COLOURS
from unveil.report.page import Figure
from unveil.report.plots import Line, Scale, line_figure
from unveil.simulation.builtin import WorldSpec
from unveil.simulation.choice import CHOICES
from unveil.simulation.theory import claims
from unveil.simulation.theory.claims import EXPOSED, SEVERITIES, TOLERANCE, with_verdict
from unveil.simulation.theory.losses import LEVEL, LossComparison, with_agreement
from unveil.simulation.world import World
from unveil.studies.engine import Answer, Cell, Context, Study

#: Beyond this hardly anything is ever shown, and 1/θ leaves single precision.
MOST_SEVERE = 10.0
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

    def cells(self) -> Iterable[Cell]:
        for choice in CHOICES:
            yield Cell(f"draws-{choice}", {"choice": choice, "severity": self.severity}, self.draws, "run_draws")
        for severity in SEVERITIES:
            at = {"choice": EXPOSED, "severity": severity}
            yield Cell(f"minima-p{severity:g}", at, self.draws / 3, "run_minima")
        yield Cell("exact", {}, self.draws / 3, "run_exact")

    def _world(self, severity: float) -> World:
        spec = WorldSpec(users=self.users, items=self.items, steps=self.steps, severity=severity)
        return World.builtin(spec, self.seed)

    def run_draws(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        compared = LossComparison.of(self._world(self.severity), self.seed)
        rows = compared.drawn(cell.at["choice"], self.draws, self.seed, len(CHOICES), context.on_progress)
        return {"slots": len(compared.dense), "estimated": rows}

    def run_minima(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        return {"minimisers": list(claims.minimisers(self._world(cell.at["severity"]), self.logs, self.seed))}

    def run_exact(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        worlds = claims.enumerated(self.severity, self.seed)
        return {
            "claims": list(claims.findings(worlds)),
            "choosers": list(claims.choosers(worlds["moving"])),
            "distances": claims.by_choice(self._world(self.severity)),
            "example": claims.example(worlds["moving"].dense),
        }

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        for row in record.get("estimated", []):
            yield {"estimator": row["estimator"], "protocol": "drawn logs", "metric": "bias", "value": row["mean"]}
        for row in record.get("minimisers", []):
            for metric in ("slot_first", "user_first", "log_first"):
                yield {"estimator": row["estimator"], "protocol": "minimum", "metric": metric, "value": row[metric]}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        exact, records = answer.records["exact"], answer.records
        drawn = [row for choice in CHOICES for row in records[f"draws-{choice}"]["estimated"]]
        return {
            "rules": {"tolerance": TOLERANCE, "level_of_all_intervals_together": LEVEL},
            "findings": list(map(with_verdict, exact["claims"])),
            "choices": exact["choosers"],
            "monte_carlo": list(map(with_agreement, drawn)),
            "minimisers": [row for p in SEVERITIES for row in records[f"minima-p{p:g}"]["minimisers"]],
            "distances": exact["distances"],
            "example": exact["example"],
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        minima = [answer.records[f"minima-p{severity:g}"]["minimisers"] for severity in SEVERITIES]
        at = [{row["estimator"]: row for row in rows} for rows in minima]
        one_log = [(each["ITPS"], each["naive"]) for each in at]
        apart = at[0]["corrected"]["slot_distance"] - at[0]["ITPS"]["slot_distance"]
        lost = [[row["user_first"] - row["log_first"] for row in pair] for pair in one_log]
        return {
            "relative": relative,
            "choice_name": choice_name,
            "slots": answer.records[f"draws-{EXPOSED}"]["slots"],  # user-step pairs of the larger world
            "mild": at[0],
            "severe": at[-1],
            "corrected_is_itps": abs(apart) <= TOLERANCE,
            "one_log": [(itps, naive, _position(itps, naive)) for itps, naive in one_log],
            "weights_cost": all(itps > naive for itps, naive in lost),
        }

    def figures(self, answer: Answer) -> Mapping[str, Figure]:
        found, dots = self.findings(answer), []
        for row in found["monte_carlo"]:
            if row["estimator"] in ("naive", "IPS", "ITPS"):
                label, colour = f"{row['estimator']}, {choice_name(row['choice'])}", COLOURS[row["estimator"].lower()]
                title = f"{label}: {relative(row['mean'])}"
                dots.append(Dot(label, row["mean"], row["low"], row["high"], colour, title, row["formula"]))
        return {
            "biases": intervals(dots, "bias, relative to the ideal loss", None, "biases"),
            "first-limit": _first(found["minimisers"], "user_first"),
            "first-one-log": _first(found["minimisers"], "log_first"),
        }

    def csv(self, answer: Answer) -> list[dict[str, Any]]:
        found, bias = self.findings(answer), {"severity": self.severity, "quantity": "relative bias"}
        rows = [{**bias, **row, "part": f"claim: {row['topic']}", "value": row["bias"]} for row in found["findings"]]
        rows += [
            {**bias, **row, "part": "choice", "estimator": estimator, "value": value}
            for row in found["choices"]
            for estimator, value in row["bias"].items()
        ]
        drawn = {**bias, "part": "drawn logs"}
        rows += [{**drawn, **row, "value": row["mean"], "verdict": row["found"]} for row in found["monte_carlo"]]
        for row in found["minimisers"]:
            for name in ("bias", "slot_distance", "slot_first", "user_distance", "user_first", "log_first"):
                bounds = {} if name == "log_first" else {"low": None, "high": None}
                if row[name] is not None:
                    rows.append({"part": "minimiser", **row, "quantity": name, "value": row[name], **bounds})
        return [{name: row.get(name) for name in _COLUMNS} for row in rows]


def choice_name(choice: str) -> str:
    """How the user chooses, in words; plug-ins go by their own names."""
    return _CHOICES.get(choice, choice)


def relative(bias: float | None) -> str:
    """+37%, −4.2%; within rounding 0; – where there is none."""
    if bias is None:
        return "–"
    if abs(bias) <= TOLERANCE:
        return "0"
    digits = 0 if abs(bias) >= 0.1 else 1 if abs(bias) >= 0.01 else 3
    return f"{bias:+.{digits}%}".replace("-", "−")


def _position(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    if one["low"] > other["high"]:
        return "above"
    return "below" if one["high"] < other["low"] else "not distinguishable from"


def _first(minima: Sequence[Mapping[str, Any]], quantity: str) -> Figure:
    drawn = {}
    for label in dict.fromkeys(row["estimator"] for row in minima):
        along = {row["severity"]: row[quantity] for row in minima if row["estimator"] == label}
        drawn[label] = Line(list(along), list(along.values()), COLOURS[label.lower()])
    scale = Scale(percent=(False, True), top=1.0, ticks={severity: f"{severity:g}" for severity in SEVERITIES})
    axes = ("severity p", "share of slots with the favourite first")
    return line_figure(drawn, axes, quantity.replace("_", "-"), scale)
