"""RQ2: how robust is each estimator to increasing exposure bias?"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import BASE, BOUND, TRUE, Measure, Results
from unveil.studies.semisynthetic import SemiSynthetic
from unveil.studies.tables import weight_means

#: Of the bands, as in the caption of the paper's figure; tables have 95%.
LEVEL = 0.90


class RQ2(SemiSynthetic):
    """The paper's four plots along the severity p, with slopes, the best at each p, and the effective sample."""

    name: ClassVar[str] = "rq2"
    title: ClassVar[str] = "How robust is each estimator to increasing exposure bias?"
    template: ClassVar[str] = "rq2.md.j2"
    severities: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)

    def measures(self, results: Results, protocol: str | None = None) -> list[Measure]:
        return Published.semisynthetic(TRUE).under(protocol or results.protocol("uniform"))

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        results, headline = answer.results, self.headline(answer.results)
        at = {f"{p:g}": results.at(severity=p) for p in self.severities}
        measures, arms = self.measures(results), results.trained
        gaps = {arm: {p: here.gap_closed(arm, headline) for p, here in at.items()} for arm in arms}
        weights = {f"{p:g}": weight_means(records) for p, records in self._trained(answer).items()}
        return {
            **super().findings(answer),
            "slopes": {arm: {m.name: slope(results, arm, m) for m in measures} for arm in arms},
            "best": {p: {m.name: here.order(m) for m in measures} for p, here in at.items()},
            "ess_share": {arm: {p: w[arm]["ess_share"] for p, w in weights.items() if arm in w} for arm in arms},
            "gap_closed_by_severity": {arm: {p: g and g.mean for p, g in own.items()} for arm, own in gaps.items()},
            "band": LEVEL,
        }

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        results, headline = answer.results, self.headline(answer.results)
        at = {p: results.at(severity=p) for p in self.severities}
        slopes = ((arm, slope(results, arm, headline)) for arm in results.trained)
        known = dict(sorted(((arm, found) for arm, found in slopes if found is not None), key=lambda each: each[1]))
        winners = {p: next((arm for arm in here.order(headline) if arm != BOUND), "") for p, here in at.items()}
        tests = {p: here.against(headline) for p, here in at.items()}
        return {
            **super().facts(answer),
            "slope": partial(slope, results),
            "along": [m for name in (results.protocol("uniform"), "full") for m in self.measures(results, name)[:2]],
            "known": known,  # steepest first
            "falling": [arm for arm, found in known.items() if round(found, 3) < 0],
            "winners": winners if len(results.trained) > 1 else {},
            "tests": {arm: {p: tests[p][arm] for p in at} for arm in results.candidates if BASE in results.trained},
        }


def slope(results: Results, arm: str, measure: Measure) -> float | None:
    """Least squares over the severities: change of the mean for each unit of p; None with a single severity."""
    severities = results.along("severity")
    if len(severities) < 2:
        return None
    means = [results.at(severity=p).mean(arm, measure) for p in severities]
    centred = np.array(severities) - np.mean(severities)
    return float(centred @ (np.array(means) - means[0]) / (centred @ centred))
