"""RQ2: how robust is each estimator to increasing exposure bias?"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from unveil.report.names import against, listed, named
from unveil.report.page import Cell, Column, Figures, Table
from unveil.report.prose import signed
from unveil.studies.diagnostics import ess_share
from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import BASE, BOUND, TRUE, Measure, Results
from unveil.studies.semisynthetic import SemiSynthetic
from unveil.studies.tables import along_figure, along_table, arms_table, share_cell

#: Of the bands, as in the caption of the paper's figure; tables have 95%.
LEVEL = 0.90


class RQ2(SemiSynthetic):
    """The paper's four plots along the severity p, with slopes, the best at each p, and the effective sample."""

    name: ClassVar[str] = "rq2"
    title: ClassVar[str] = "How robust is each estimator to increasing exposure bias?"
    template: ClassVar[str] = "rq2.md.j2"
    severities: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)

    def measures(self, results: Results, protocol: str | None = None) -> list[Measure]:
        """The paper's four metrics, by default against uniform negatives."""
        return Published.semisynthetic(TRUE).under(protocol or results.protocol("uniform"))

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """Slopes, the best at each severity, effective sample sizes, and the gap closed at each."""
        results, headline = answer.results, self.headline(answer.results)
        at = {f"{p:g}": results.at(severity=p) for p in self.severities}
        measures, arms = self.measures(results), results.trained
        gaps = {arm: {p: here.gap_closed(arm, headline) for p, here in at.items()} for arm in arms}
        return {
            **super().findings(answer),
            "slopes": {arm: {m.name: slope(results, arm, m) for m in measures} for arm in arms},
            "best": {p: {m.name: here.order(m) for m in measures} for p, here in at.items()},
            "ess_share": {arm: self._sample_sizes(answer, arm) for arm in arms},
            "gap_closed_by_severity": {arm: {p: g and g.mean for p, g in own.items()} for arm, own in gaps.items()},
            "band": LEVEL,
        }

    def _sample_sizes(self, answer: Answer, arm: str) -> dict[str, float]:
        found = {f"{p:g}": ess_share(answer.where(severity=p, estimator=arm)) for p in self.severities}
        return {p: share for p, share in found.items() if share is not None}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """Who falls, who is best at each severity, and the tests against the baseline there."""
        results, headline = answer.results, self.headline(answer.results)
        at, last = {p: results.at(severity=p) for p in self.severities}, f"{self.severities[-1]:g}"
        slopes = {arm: slope(results, arm, headline) for arm in results.trained}
        known = dict(sorted(((arm, found) for arm, found in slopes.items() if found is not None), key=lambda s: s[1]))
        winners = {p: next((arm for arm in here.order(headline) if arm != BOUND), "") for p, here in at.items()}
        tests = {p: here.against(headline) for p, here in at.items()}
        return {
            **super().facts(answer),
            "known": known,  # steepest first
            "falling": [arm for arm, found in known.items() if round(found, 3) < 0],
            "sample_sizes": {
                arm: own[last] for arm in results.trained if last in (own := self._sample_sizes(answer, arm))
            },
            "winners": winners if len(results.trained) > 1 else {},
            "tests": {arm: {p: tests[p][arm] for p in at} for arm in results.candidates if BASE in results.trained},
        }

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        """Means along p with slopes, the gap at each p, and every severity by itself."""
        results = answer.results
        protocols = [results.protocol("uniform"), "full"]
        along = [self._along(results, m) for protocol in protocols for m in self.measures(results, protocol)[:2]]
        each = [
            _captioned(arms_table(results.at(severity=p), self.measures(results)), f"True relevance, severity {p:g}")
            for p in self.severities
        ]
        own = {"along": along, "slopes": self._slopes(results), "gap": self._gap(results), "every": each}
        return {**super().tables(answer), **own}

    def _along(self, results: Results, measure: Measure) -> Table:
        table = along_table(results, "severity", results.arms, lambda here, arm: _mean(here.mean(arm, measure)))
        rows = [[*row, _slope(results, arm, measure)] for row, arm in zip(table.rows, results.arms, strict=True)]
        title = f"{measure.name} on true relevance, ranked against {against(measure.protocol)}"
        return Table(title, [*table.columns, Column("slope", True)], rows, foot="slope: change for each unit of p")

    def _slopes(self, results: Results) -> Table:
        measures = self.measures(results)
        heads = [Column(m.name, True, "change for each unit of p") for m in measures]
        rows = [[named(arm), *(_slope(results, arm, m) for m in measures)] for arm in results.trained]
        return Table("", [Column("estimator"), *heads], rows)

    def _gap(self, results: Results) -> Table:
        headline, rows = self.headline(results), []
        for p in self.severities:
            here = results.at(severity=p)
            shares = [share_cell(here.gap_closed(arm, headline)) for arm in results.candidates]
            rows.append([f"p = {p:g}", listed(here.order(headline)), *shares])
        heads = [Column("severity"), Column("order of the means")]
        return Table("", [*heads, *(Column(named(arm), True) for arm in results.candidates)], rows, sortable=False)

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        """Bands along p, as in the paper and among all items."""
        results = answer.results
        bands = {
            name: Figures([along_figure(results, "severity", m, level=LEVEL) for m in self.measures(results, protocol)])
            for name, protocol in (("sampled", results.protocol("uniform")), ("full", "full"))
        }
        return {**super().figures(answer), **bands}


def slope(results: Results, arm: str, measure: Measure) -> float | None:
    """Least squares over the severities: change of the mean for each unit of p; None with a single severity."""
    severities = results.along("severity")
    if len(severities) < 2:
        return None
    means = [results.at(severity=p).mean(arm, measure) for p in severities]
    centred = np.array(severities) - np.mean(severities)
    return float(centred @ (np.array(means) - means[0]) / (centred @ centred))


def _slope(results: Results, arm: str, measure: Measure) -> Cell | str:
    found = slope(results, arm, measure)
    return "–" if found is None else Cell(signed(found, 4), found)


def _mean(value: float) -> Cell:
    return Cell(f"{value:.4f}", value)


def _captioned(table: Table, caption: str) -> Table:
    return Table(caption, table.columns, table.rows, table.sortable, table.foot)
