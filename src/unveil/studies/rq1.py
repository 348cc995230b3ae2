"""RQ1: how well does each estimator capture the true relevance?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from unveil.report.names import named
from unveil.report.page import Cell, Column, Figures, Table
from unveil.report.prose import percent
from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import TRUE, Ranking, Results
from unveil.studies.semisynthetic import SemiSynthetic
from unveil.studies.tables import arms_table, dots_figure, paper_table, rankings_table, share_cell


class RQ1(SemiSynthetic):
    """The paper's first table, with intervals, tests, its own figures beside, and full ranking."""

    name: ClassVar[str] = "rq1"
    title: ClassVar[str] = "How well does each estimator capture the true relevance?"
    template: ClassVar[str] = "rq1.md.j2"

    def here(self, answer: Answer) -> tuple[Results, Published]:
        """The results at the one severity, and the paper's table for it."""
        return answer.results.at(severity=self.severities[0]), Published.semisynthetic(TRUE, self.severities[0])

    def rankings(self, answer: Answer) -> list[Ranking]:
        """Each arm against the next best under every protocol; each protocol is a table of its own."""
        results, published = self.here(answer)
        return [each for protocol in results.protocols for each in results.rankings(published.under(protocol))]

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        """The verdict on each figure of the paper's table, the orders, and the tests."""
        results, published = self.here(answer)
        tests = tests_json(self.rankings(answer))
        return {**super().findings(answer), "verdict": published.verdict(results), "tests": tests}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        """The results at the one severity, the paper's table, and ours beside it."""
        results, published = self.here(answer)
        compared = published.compare(results)
        return {**super().facts(answer), "here": results, "published": published, "compared": compared}

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        """Both rankings, the paper's figures, tests and gaps."""
        results, published = self.here(answer)
        return {
            **super().tables(answer),
            "sampled": arms_table(results, published.under(results.protocol("uniform")), published),
            "full": arms_table(results, published.under("full")),
            "paper": paper_table(published.compare(results)),
            "tests": rankings_table(self.rankings(answer)),
            "gap": gap_table(results, published),
        }

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        """The paper's four metrics, ours and its own."""
        results, published = self.here(answer)
        measures = published.under(results.protocol("uniform"))
        dots = Figures([dots_figure(results, measure, published) for measure in measures])
        return {**super().figures(answer), "beside": dots}


def gap_table(results: Results, published: Published) -> Table:
    """The share of the gap that each arm closes under each metric and protocol, and the paper's."""
    rows: list[list[Cell | str]] = []
    comparable = published.comparable(results)
    for arm in results.candidates:
        for measure in published.measures:
            shares = [share_cell(results.gap_closed(arm, measure._replace(protocol=p))) for p in results.protocols]
            theirs = published.gap_closed(arm, measure) if comparable else None
            rows.append([named(arm), measure.name, *shares, "–" if theirs is None else percent(theirs)])
    columns = [Column("estimator"), Column("metric"), *(Column(protocol, True) for protocol in results.protocols)]
    return Table("", [*columns, Column("paper", True)], rows)


def tests_json(rankings: Sequence[Ranking]) -> list[dict[str, Any]]:
    """The tests of rankings, for results.json."""
    return [
        {
            **ranking.measure._asdict(),
            "better": step.arm,
            "next": step.below,
            **asdict(step.test),
            "sure": step.significant,
        }
        for ranking in rankings
        for step in ranking.steps
        if step.test is not None
    ]
