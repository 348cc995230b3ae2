"""RQ1: how well does each estimator capture the true relevance?"""

from collections.abc import Mapping
from typing import Any, ClassVar

from unveil.report.page import Figures
from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import TRUE, Step, tests_json
from unveil.studies.semisynthetic import SemiSynthetic
from unveil.studies.tables import arms_table, dots_figure


class RQ1(SemiSynthetic):
    """The paper's first table, with intervals, tests, its own figures beside, and full ranking."""

    name: ClassVar[str] = "rq1"
    title: ClassVar[str] = "How well does each estimator capture the true relevance?"
    template: ClassVar[str] = "rq1.md.j2"

    @property
    def published(self) -> Published:
        return Published.semisynthetic(TRUE, self.severities[0])

    def tests(self, answer: Answer) -> list[Step]:
        """Each arm against the next best under every protocol; each protocol is a table of its own."""
        here = self.first(answer)
        return [each for protocol in here.protocols for each in here.against_next(self.published.under(protocol))]

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        verdict, tests = self.published.verdict(self.first(answer)), tests_json(self.tests(answer))
        return {**super().findings(answer), "verdict": verdict, "tests": tests}

    def tables(self, answer: Answer) -> Mapping[str, Any]:
        here, published = self.first(answer), self.published
        return {
            **super().tables(answer),
            "sampled": arms_table(here, published.under(here.protocol("uniform")), published),
            "full": arms_table(here, published.under("full")),
        }

    def figures(self, answer: Answer) -> Mapping[str, Any]:
        here, published = self.first(answer), self.published
        dots = [dots_figure(here, measure, published) for measure in published.under(here.protocol("uniform"))]
        return {**super().figures(answer), "beside": Figures(dots)}
