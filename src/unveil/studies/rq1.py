"""RQ1: how well does each estimator capture the true relevance?"""

from collections.abc import Mapping
from typing import Any, ClassVar

from unveil.studies.engine import Answer
from unveil.studies.paper import Published
from unveil.studies.results import TRUE, Step, tests_json
from unveil.studies.semisynthetic import SemiSynthetic


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
