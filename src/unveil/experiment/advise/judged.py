"""The figures of all that was tried, as the decision and the page need them. Shapes: Z scenarios, W, R as there."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from unveil.experiment.advise.decision import Decision, decide
from unveil.experiment.advise.gains import Floats, mean_over_strata
from unveil.experiment.advise.run import Tried
from unveil.experiment.advise.scenarios import Scenario
from unveil.experiment.advise.source import Looks
from unveil.experiment.outcome import BASE, BOUND, TRUE, Estimate
from unveil.experiment.reproduce.results import Figure

#: What is judged: the true favourite among all items, as a list would show it.
HEADLINE = Figure(TRUE, "full", "NDCG", 10)
BESIDE = Figure(TRUE, "full", "Recall", 10)


@dataclass(frozen=True, eq=False)
class Advice:
    """What was tried, and what follows."""

    tried: Tried

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """In the order of all tuples of figures."""
        return self.tried.plan.scenarios

    @cached_property
    def value(self) -> dict[str, Floats]:
        """value_ZWR of every arm."""
        return self.values(HEADLINE)

    def values(self, figure: Figure) -> dict[str, Floats]:
        """value_ZWR of every arm under a figure."""
        results = {scenario: self.tried.at(scenario) for scenario in self.scenarios}
        return {
            arm: np.stack([each.by_replicate(scenario.severity, arm, figure) for scenario, each in results.items()])
            for arm in self.tried.candidates.arms
        }

    @cached_property
    def decision(self) -> Decision:
        """Which to use."""
        return decide(self.value, self.tried.candidates.usable)

    def mean(self, arm: str, figure: Figure = HEADLINE) -> float:
        """Over all draws."""
        value = self.value if figure == HEADLINE else self.values(figure)
        return float(value[arm].mean())

    def share(self, arm: str) -> float | None:
        """Of the gap from naive to ideal, over all draws; None where there is no gap."""
        gap = self.mean(BOUND) - self.mean(BASE)
        return (self.mean(arm) - self.mean(BASE)) / gap if gap > 0 else None

    def share_at(self, arm: str, scenario: Scenario) -> Estimate | None:
        """Of the gap in one scenario, with its interval over draws."""
        return self.tried.at(scenario).gap_closed(arm, HEADLINE, [scenario.severity])

    def ceiling(self) -> tuple[str, float]:
        """The arm with true propensities that gains most, and how much."""
        known = [arm for arm in self.tried.candidates.ceilings if arm != BOUND] or [BOUND]
        best = max(known, key=self.mean)
        return best, mean_over_strata(self.value[best] - self.value[BASE]).difference

    def looks(self, scenario: Scenario) -> Looks:
        """Of the logs drawn in a scenario, on average."""
        cells = self.tried.at(scenario).every(scenario.severity, BASE)
        return Looks(*(float(np.mean([cell["looks"][each.name] for cell in cells])) for each in fields(Looks)))

    @cached_property
    def alike(self) -> Scenario:
        """The scenario whose logs are concentrated most like the real one."""
        return min(self.scenarios, key=lambda each: abs(self.looks(each).gini - self.tried.looks.gini))
