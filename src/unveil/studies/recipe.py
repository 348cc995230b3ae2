"""The paper's recipe for real data, where the truth is known: does what it reports as a gain hold on true relevance?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, ClassVar, Self

from pydantic import model_validator

from unveil.evaluation.statistics import Paired
from unveil.report.names import named
from unveil.report.page import Cell, Column, Table
from unveil.report.prose import p_value, signed
from unveil.studies.arms import check_gain
from unveil.studies.engine import Answer
from unveil.studies.results import ALPHA, BOUND, STANDARD, TRUE, Measure, Results
from unveil.studies.semisynthetic import SemiSynthetic

#: Metrics that the paper reports on real data.
METRICS = (("NDCG", 10), ("Recall", 10))
#: The exponents that the authors tuned for ml-1m, the plain inverse of popularity, and the true propensities.
ARMS = (
    "naive",
    "ips@popularity+exponent=0.5",
    "itps@popularity+exponent=0.2",
    "ips@popularity",
    "itps@popularity",
    "itps@true",
    "ideal",
)


@dataclass(frozen=True)
class Gain:
    """An arm less naive under one metric: as the recipe reports it, and on true relevance among all items."""

    arm: str
    severity: float
    metric: tuple[str, int]
    reported: Paired
    true: Paired

    @property
    def claimed(self) -> bool:
        """Whether the recipe would report a gain."""
        return self.reported.difference > 0 and self.reported.p < ALPHA

    @property
    def truth(self) -> str:
        """What a gain is on true relevance."""
        if not self.true.p < ALPHA:
            return "may be none"
        return "holds" if self.true.difference > 0 else "is a loss"

    @property
    def verdict(self) -> str:
        """What becomes of it."""
        if not self.reported.difference > 0:
            return "missed" if self.truth == "holds" else "none reported"
        return self.truth if self.claimed else f"unsure; {self.truth}"

    def as_json(self) -> dict[str, Any]:
        """For results.json."""
        row = {"estimator": self.arm, "severity": self.severity, "metric": self.metric[0], "k": self.metric[1]}
        return {**row, "reported": _finite(self.reported), "true": _finite(self.true), **self._said}

    @property
    def _said(self) -> dict[str, Any]:
        return {"claimed": self.claimed, "verdict": self.verdict}


class Recipe(SemiSynthetic):
    """Naive, IPS and ITPS by popularity, evaluated as on real data, and by the ground truth."""

    name: ClassVar[str] = "recipe"
    title: ClassVar[str] = "Does what the recipe for real data reports as a gain hold on true relevance?"
    template: ClassVar[str] = "recipe.md.j2"
    by_popularity: ClassVar[bool] = True
    severities: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    estimators: tuple[str, ...] = ARMS

    @model_validator(mode="after")
    def check_baseline(self) -> Self:
        """Naive, and something that may gain over it."""
        check_gain(self.estimators)
        return self

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """Every gain with both tests."""
        found = [gain.as_json() for severity in self.severities for gain in gains(answer.results, severity)]
        return {**super().findings(answer), "gains": found}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """The gains in NDCG@10 at each severity."""
        found = {p: [g for g in gains(answer.results, p) if g.metric == METRICS[0]] for p in self.severities}
        return {**super().facts(answer), "found": found}

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        """At each severity the levels under each evaluation, and the gains."""
        results, every = answer.results, list[Table]()
        for p in self.severities:
            every += [levels_table(results.at(severity=p), p), gains_table(gains(results, p), p)]
        return {**super().tables(answer), "gains": every}


def gains(results: Results, severity: float) -> list[Gain]:
    """Every arm that needs no ground truth, under both metrics; p-values after Holm's correction over the arms."""
    here = results.at(severity=severity)
    found = []
    for metric in METRICS:
        claims = here.against(Measure(STANDARD, here.protocol("popular"), *metric))
        truth = here.against(Measure(TRUE, "full", *metric))
        found += [Gain(arm, severity, metric, claims[arm], truth[arm]) for arm in claims if arm != BOUND]
    return found


def levels_table(results: Results, severity: float) -> Table:
    """NDCG@10 of all arms: as the recipe evaluates, and by the ground truth."""
    popular, sampled = results.protocol("popular"), results.protocol("uniform")
    measures = {
        "reported": (Measure(STANDARD, popular, "NDCG", 10), f"standard, {popular}"),
        "observed": (Measure(STANDARD, "full", "NDCG", 10), "standard, all items"),
        "true": (Measure(TRUE, "full", "NDCG", 10), "true relevance, all items"),
        "sampled": (Measure(TRUE, sampled, "NDCG", 10), f"true relevance, {sampled}"),
    }
    columns = [Column("NDCG@10"), *(Column(name, True, about) for name, (_, about) in measures.items())]
    rows: list[list[Cell | str]] = [
        [named(arm), *(_mean(results.mean(arm, measure)) for measure, _ in measures.values())] for arm in results.arms
    ]
    foot = " · ".join(f"{name}: {about}" for name, (_, about) in measures.items())
    return Table(f"Severity {severity:g}", columns, rows, foot=f"{foot} · means over {results.units}")


def gains_table(found: Sequence[Gain], severity: float) -> Table:
    """The differences from naive, and what becomes of them."""
    columns = [
        Column("less naive"),
        Column("metric"),
        Column("reported", True, "standard, popular negatives"),
        Column("true", True, "true relevance, all items"),
        Column("verdict"),
    ]
    rows: list[list[Cell | str]] = [
        [named(gain.arm), "@".join(map(str, gain.metric)), _test(gain.reported), _test(gain.true), gain.verdict]
        for gain in found
    ]
    return Table(f"Gains, severity {severity:g}", columns, rows, foot="p-values after Holm’s correction over the arms")


def _mean(value: float) -> Cell:
    return Cell(f"{value:.4f}", value)


def _test(found: Paired) -> Cell:
    return Cell(f"{signed(found.difference)} ({p_value(found.p)})", found.difference)


def _finite(test: Paired) -> dict[str, Any]:
    return {name: value if isfinite(value) else None for name, value in asdict(test).items()}
