"""How each estimator stands at each level: the share of the gap it closes, and whether it can be told from naive."""

from dataclasses import dataclass
from typing import Literal

from unveil.evaluation.statistics import Paired
from unveil.experiment.assumptions.axes import Axis, Level
from unveil.experiment.assumptions.run import Survey
from unveil.experiment.outcome import BASE, BOUND, Estimate
from unveil.experiment.reproduce.ranking import ALPHA
from unveil.experiment.reproduce.words import against_base, headline

Verdict = Literal["holds", "fades", "breaks"]


@dataclass(frozen=True)
class Standing:
    """One estimator at one level. `test` is against naive; its p is corrected over the estimators of the level."""

    estimator: str
    level: Level
    gap: Estimate | None
    test: Paired

    @property
    def above(self) -> bool:
        """Surely better than naive."""
        return self.test.p < ALPHA and self.test.difference > 0

    @property
    def below(self) -> bool:
        """Surely worse than naive."""
        return self.test.p < ALPHA and self.test.difference < 0


@dataclass(frozen=True)
class Line:
    """One estimator along one axis."""

    estimator: str
    axis: Axis
    standings: tuple[Standing, ...]

    @property
    def verdict(self) -> Verdict:
        """holds: surely above naive at every level it was tried at; breaks: surely below at some; fades: neither."""
        if any(each.below for each in self.standings):
            return "breaks"
        return "holds" if all(each.above for each in self.standings) else "fades"

    @property
    def untried(self) -> tuple[Level, ...]:
        """The levels at which it has no arm."""
        known = [each.level for each in self.standings]
        return tuple(level for level in self.axis.levels if level not in known)

    @property
    def lowest(self) -> Standing | None:
        """The level at which it closes least."""
        known = [each for each in self.standings if each.gap is not None]
        return min(known, key=lambda each: each.gap.mean if each.gap else 0.0) if known else None


def lines(survey: Survey) -> list[Line]:
    """Every estimator between naive and ideal, along every axis; levels at which it has no arm are left out.

    Where it has none along the whole axis there is no line: nothing is known of it there.
    """
    between = [name for name in dict.fromkeys(survey.plan.estimators) if name not in (BASE, BOUND)]
    at = {level: standings(survey, level) for axis in survey.plan.axes for level in axis.levels}
    every = (
        Line(name, axis, tuple(at[level][name] for level in axis.levels if name in at[level]))
        for axis in survey.plan.axes
        for name in between
    )
    return [line for line in every if line.standings]


def standings(survey: Survey, level: Level) -> dict[str, Standing]:
    """All estimators at one level."""
    results, severity = survey.at(level.point), level.point.severity
    figure = headline(results)
    tests = against_base(results, severity, figure)
    return {
        name: Standing(name, level, _of_a_gap(results.gap_closed(name, figure, [severity])), test)
        for name, test in tests.items()
        if name != BOUND
    }


def _of_a_gap(closed: Estimate | None) -> Estimate | None:
    """A share of what may be no gap at all, which has no interval however many units there are, says nothing."""
    return None if closed is None or (closed.low is None and closed.n > 1) else closed
