"""The paper's recipe for real data, where the truth is known: does what it reports as a gain hold on true relevance?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import model_validator

from unveil.evaluation.statistics import Paired
from unveil.report.names import named
from unveil.report.page import Cell, Table, number
from unveil.report.prose import p_value, signed
from unveil.studies.arms import check_gain
from unveil.studies.engine import Answer
from unveil.studies.results import BOUND, STANDARD, TRUE, Measure, Results, paired_json, verdict
from unveil.studies.semisynthetic import SemiSynthetic
from unveil.studies.tables import Row, table

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
        return verdict(self.reported) == "above"

    @property
    def verdict(self) -> str:
        """What becomes of it on true relevance."""
        truth = {"above": "holds", "below": "is a loss", "level": "may be none"}[verdict(self.true)]
        if not self.reported.difference > 0:
            return "missed" if truth == "holds" else "none reported"
        return truth if self.claimed else f"unsure; {truth}"

    def as_json(self) -> dict[str, Any]:
        """For results.json."""
        row = {"estimator": self.arm, "severity": self.severity, "metric": self.metric[0], "k": self.metric[1]}
        tests = {"reported": paired_json(self.reported), "true": paired_json(self.true)}
        return {**row, **tests, "claimed": self.claimed, "verdict": self.verdict}


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
        f"reported | standard, {popular}": Measure(STANDARD, popular, "NDCG", 10),
        "observed | standard, all items": Measure(STANDARD, "full", "NDCG", 10),
        "true | true relevance, all items": Measure(TRUE, "full", "NDCG", 10),
        f"sampled | true relevance, {sampled}": Measure(TRUE, sampled, "NDCG", 10),
    }
    rows: Iterable[Row] = (
        [named(arm), *(number(results.mean(arm, m), 4) for m in measures.values())] for arm in results.arms
    )
    foot = f"{' · '.join(measures).replace(' | ', ': ')} · means over {results.units}"
    return table(["NDCG@10", *measures], rows, f"Severity {severity:g}", foot=foot)


def gains_table(found: Sequence[Gain], severity: float) -> Table:
    """The differences from naive, and what becomes of them."""
    heads = ["less naive", "metric", "reported | standard, popular negatives", "true | true relevance, all items"]
    rows: Iterable[Row] = (
        [named(gain.arm), "@".join(map(str, gain.metric)), _test(gain.reported), _test(gain.true), gain.verdict]
        for gain in found
    )
    foot = "p-values after Holm’s correction over the arms"
    return table([*heads, "verdict"], rows, f"Gains, severity {severity:g}", text=2, foot=foot)


def _test(found: Paired) -> Cell:
    return Cell(f"{signed(found.difference)} ({p_value(found.p)})", found.difference)
