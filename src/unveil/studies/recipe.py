"""The paper's recipe for real data, where the truth is known: does what it reports as a gain hold on true relevance?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import model_validator

from unveil.errors import UnveilError
from unveil.evaluation.statistics import Paired
from unveil.studies import shipped
from unveil.studies.engine import Answer
from unveil.studies.results import BASE, BOUND, STANDARD, TRUE, Measure, Results, paired_json, verdict
from unveil.studies.semisynthetic import SemiSynthetic

#: Metrics that the paper reports on real data.
METRICS = (("NDCG", 10), ("Recall", 10))


@dataclass(frozen=True)
class Gain:
    """An arm less naive under one metric: as the recipe reports it, and on true relevance among all items."""

    arm: str
    metric: tuple[str, int]
    reported: Paired
    true: Paired

    @property
    def verdict(self) -> str:
        truth = {"above": "holds", "below": "is a loss", "level": "may be none"}[verdict(self.true)]
        if not self.reported.difference > 0:
            return "missed" if truth == "holds" else "none reported"
        return truth if verdict(self.reported) == "above" else f"unsure; {truth}"


class Recipe(SemiSynthetic):
    """Naive, IPS and ITPS by popularity, evaluated as on real data, and by the ground truth."""

    name: ClassVar[str] = "recipe"
    title: ClassVar[str] = "Does what the recipe for real data reports as a gain hold on true relevance?"
    template: ClassVar[str] = "recipe.md.j2"
    by_popularity: ClassVar[bool] = True
    severities: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    estimators: tuple[str, ...] = tuple(shipped("defaults")["recipe"]["estimators"].split(","))

    @model_validator(mode="after")
    def check_baseline(self) -> Self:
        if BASE not in self.estimators or set(self.estimators) <= {BASE, BOUND}:
            found, expected = ", ".join(self.estimators), "naive and at least one that is not ideal"
            raise UnveilError("a gain is over naive", where="--estimators", found=found, expected=expected)
        return self

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        found = [
            {
                "estimator": gain.arm,
                "severity": severity,
                **dict(zip(("metric", "k"), gain.metric, strict=True)),
                "reported": paired_json(gain.reported),
                "true": paired_json(gain.true),
                "claimed": verdict(gain.reported) == "above",
                "verdict": gain.verdict,
            }
            for severity in self.severities
            for gain in gains(answer.results, severity)
        ]
        return {**super().findings(answer), "gains": found}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        popular, sampled = (answer.results.protocol(kind) for kind in ("popular", "uniform"))
        return {
            **super().facts(answer),
            "found": {severity: gains(answer.results, severity) for severity in self.severities},
            "levels": {
                f"reported: standard, {popular}": Measure(STANDARD, popular, *METRICS[0]),
                "observed: standard, all items": Measure(STANDARD, "full", *METRICS[0]),
                "true: true relevance, all items": Measure(TRUE, "full", *METRICS[0]),
                f"sampled: true relevance, {sampled}": Measure(TRUE, sampled, *METRICS[0]),
            },
        }


def gains(results: Results, severity: float) -> list[Gain]:
    """Every arm that needs no ground truth, under both metrics; p-values after Holm's correction over the arms."""
    here, found = results.at(severity=severity), []
    for metric in METRICS:
        claims = here.against(Measure(STANDARD, here.protocol("popular"), *metric))
        truth = here.against(Measure(TRUE, "full", *metric))
        found += [Gain(arm, metric, claims[arm], truth[arm]) for arm in claims if arm != BOUND]
    return found
