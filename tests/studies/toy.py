"""A throw-away study: what the engine gives for free."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, ClassVar

from unveil.studies.engine import Answer, Cell, Context, Study
from unveil.studies.results import Measure

HEIGHT = Measure("", "full", "height")


class Toy(Study):
    name: ClassVar[str] = "toy"
    title: ClassVar[str] = "How high is it?"
    template: ClassVar[str] = """
{% block findings %}
ITPS closes {{ gap_closed | percent }} of the gap{% if gap_closed > 0.6 %}, more than half{% endif %}.

It is {{ (results.at(level=1.0).estimate("itps", height)) | estimate }} high.
{% endblock %}
{% block tables %}{{ show(draw.arms_table(results.at(level=1.0), [height]), "Heights at level 1") }}{% endblock %}
{% block page %}
## Along the levels
{{ show(draw.along_figure(results, "level", height), title="Higher and higher") }}

> Warning: this is a toy.
{% endblock %}
"""
    extent = Study.extent | {"levels"}
    seed: int = 0
    replicates: int = 3
    levels: tuple[float, ...] = (1.0, 2.0)

    def cells(self) -> Iterable[Cell]:
        for r, level, arm in product(range(self.replicates), self.levels, ("naive", "itps", "ideal")):
            yield Cell(f"r{r}-l{level:g}-{arm}", {"replicate": r, "level": level, "estimator": arm})

    def run_cell(self, cell: Cell, context: Context) -> Mapping[str, Any]:
        context.on_progress(0.5)
        worth = {"naive": 0, "itps": 1, "ideal": 2}[cell.at["estimator"]]
        return {"height": self.seed + worth * cell.at["level"] + 0.1 * cell.at["replicate"] * (worth + 1)}

    def rows(self, cell: Cell, record: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        yield {"protocol": "full", "metric": "height", "value": record["height"]}

    def findings(self, answer: Answer) -> Mapping[str, Any]:
        gap = answer.results.gap_closed("itps", HEIGHT)
        return {"gap_closed": gap and gap.mean}

    def facts(self, answer: Answer) -> Mapping[str, Any]:
        return {"height": HEIGHT}
