"""Beyond the paper: how much of the gap from naive to ideal each estimator closes, with true and estimated exposure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from unveil.estimators.base import estimator
from unveil.evaluation.statistics import Paired
from unveil.propensity.base import PROPENSITIES
from unveil.report.charts import shares_figure
from unveil.report.names import against
from unveil.studies.arms import Variant, check_gap, propensity_settings
from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import ALPHA, BASE, BOUND, TRUE, Estimate, Measure, Results, corrected, paired_json
from unveil.studies.semisynthetic import SemiSynthetic

#: What was set out to be closed at every severity: with the study's propensities, and with what the log gives.
AIM, AIM_ESTIMATED = 0.60, 0.25
#: The two metrics of which the paper's shares are known.
METRICS = (("NDCG", 10), ("Recall", 10))
#: Where an arm has its exposure from, if not from a propensity that its name gives.
STUDY, NONE = "the study’s", "none"


@dataclass(frozen=True)
class Share:
    """What one arm closes at one severity: `gap` over the units, `worlds` over the replicates of each.

    `test` is the paired difference from naive over the units; its p is corrected (Holm) over all arms and severities.
    """

    arm: str
    severity: float
    measure: Measure
    gap: Estimate | None
    test: Paired
    worlds: Sequence[Estimate | None]

    @property
    def below(self) -> bool:
        return self.test.difference < 0

    @property
    def significant(self) -> bool:
        return self.test.p < ALPHA


class Beyond(SemiSynthetic):
    """The cells are RQ2's, with more estimators, each also with propensities that were estimated from its log."""

    name: ClassVar[str] = "beyond"
    title: ClassVar[str] = "How much of the gap from naive to ideal does each estimator close?"
    template: ClassVar[str] = "beyond.md.j2"
    severities: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)

    @model_validator(mode="after")
    def check_ends(self) -> Self:
        check_gap(self.estimators)
        return self

    def shares(self, answer: Answer) -> dict[Measure, list[Share]]:
        """NDCG@10 and Recall@10, ranked as in the paper and then among all items."""
        protocols = (answer.results.protocol("uniform"), "full")
        measures = [Measure(TRUE, protocol, *metric) for protocol in protocols for metric in METRICS]
        return {measure: shares(answer.results, measure) for measure in measures}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        found = [
            {
                "estimator": each.arm,
                "estimated": is_estimated(each.arm),
                "severity": each.severity,
                **{name: getattr(measure, name) for name in ("protocol", "metric", "k")},
                "gap_closed": each.gap and asdict(each.gap),
                "against_naive": paired_json(each.test),
                "below_naive": each.below,
                "sure": each.significant,
                "worlds": [world and asdict(world) for world in each.worlds],
            }
            for measure, own in self.shares(answer).items()
            for each in own
        ]
        return {**super().findings(answer), "aims": {"study": AIM, "estimated": AIM_ESTIMATED}, "shares": found}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        results, every = answer.results, self.shares(answer)
        below = [each for found in every.values() for each in found if each.below]
        here, headline = results.at(severity=self.severities[0]), self.headline(results)
        best = next(arm for arm in here.order(headline) if arm not in (BASE, BOUND))
        published = Published.semisynthetic(TRUE)
        itps = {
            m: next((s.gap for s in found if (s.arm, s.severity) == ("itps", 1)), None) for m, found in every.items()
        }
        return {
            **super().facts(answer),
            "every": every,
            "source_of": source_of,
            "reached": {m: [*self._aims(found)] for m, found in every.items()},
            "below": [each for each in below if each.significant],
            "below_by_chance": [each for each in below if not each.significant],
            "estimated": any(map(is_estimated, results.candidates)),
            "paper": [
                (m.name, published.gap_closed("itps", m._replace(protocol=published.protocol)), gap)
                for m, gap in list(itps.items())[:2]
            ],
            "best": best,
            "levels": levels(here, best, headline),
        }

    def _aims(self, found: Sequence[Share]) -> Iterator[dict[str, Any]]:
        """Who closes its aim at every severity; arms given noisy truth, or truth of their own, have no aim."""
        given = [each for each in found if source_of(each.arm) == STUDY]
        estimated = [each for each in found if is_estimated(each.arm)]
        for what, aim, own in (("", AIM, given), ("estimated ones or none", AIM_ESTIMATED, estimated)):
            if own:
                arms = list(dict.fromkeys(each.arm for each in own))
                closed = {arm: [each.gap for each in own if each.arm == arm] for arm in arms}
                least = {arm: min((gap.mean for gap in gaps if gap), default=-9.0) for arm, gaps in closed.items()}
                best = max(arms, key=lambda arm: least[arm])  # by its worst case
                yield {
                    "what": what or f"{self.propensity} propensities",
                    "aim": aim,
                    "no_gap": not any(each.gap for each in own),
                    "arms": [arm for arm, gaps in closed.items() if all(g is not None and g.mean >= aim for g in gaps)],
                    "best": best,
                    "along": [(each.severity, each.gap) for each in own if each.arm == best and each.gap is not None],
                }

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        """Those with the same source of exposure together."""
        results, every = answer.results, self.shares(answer)
        sources = list(dict.fromkeys(map(source_of, results.candidates)))
        arms = sorted(results.candidates, key=lambda arm: sources.index(source_of(arm)))
        gaps = {
            (arm, f"{m.name}\n{against(m.protocol)}"): {f"p = {e.severity:g}": e.gap for e in found if e.arm == arm}
            for arm in arms
            for m, found in every.items()
        }
        aims = {arm: AIM for arm in arms if source_of(arm) == STUDY}
        aims |= {arm: AIM_ESTIMATED for arm in arms if is_estimated(arm)}
        return {"shares": shares_figure(gaps, "gap-closed", aims=aims)}


def shares(results: Results, measure: Measure) -> list[Share]:
    """Of all arms that need no ground truth, at all severities."""
    at, m = {severity: results.at(severity=severity) for severity in results.along("severity")}, measure
    raw = [
        Share(arm, p, m, here.gap_closed(arm, m), here.difference(arm, BASE, m), here.gap_by_world(arm, m))
        for arm in results.candidates
        for p, here in at.items()
    ]
    return [replace(each, test=test) for each, test in zip(raw, corrected(s.test for s in raw), strict=True)]


def levels(results: Results, arm: str, measure: Measure) -> tuple[float, float] | None:
    """Standard deviations of the difference from naive d_WR between worlds, and between replicates of a world.

    One-way analysis of variance: σ²_world = (MS between − MS within) / R, at least 0.
    """
    difference_WR = results.by_replicate(arm, measure) - results.by_replicate(BASE, measure)
    worlds, replicates = difference_WR.shape
    if worlds < 2 or replicates < 2:
        return None
    within = float(difference_WR.var(axis=1, ddof=1).mean())
    between = float(difference_WR.mean(axis=1).var(ddof=1))
    return float(np.sqrt(max(0.0, between - within / replicates))), float(np.sqrt(within))


def source_of(arm: str) -> str:
    """The propensity of its own that an arm has, the study's, or none: some losses learn from the log alone."""
    _, has_own, own = arm.partition("@")
    if has_own:
        return own
    return STUDY if estimator(Variant.of(arm).estimator).needs in ("static", "temporal") else NONE


def is_estimated(arm: str) -> bool:
    """Whether exposure is known from the log only; what a drawn log records of it (`logged`) is the world's."""
    variant = Variant.of(arm)
    if variant.propensity is None:
        return source_of(arm) == NONE
    given = propensity_settings(variant.propensity, estimator(variant.estimator).needs, 0)
    return PROPENSITIES[given["propensity.name"]].source not in ("truth", "logged")
