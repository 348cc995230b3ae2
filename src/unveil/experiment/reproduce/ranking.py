"""Is each arm better than the next best? Paired tests, corrected over the whole table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from unveil.evaluation.statistics import Paired, holm
from unveil.experiment.reproduce.published import METRICS
from unveil.experiment.reproduce.results import Figure, Results

ALPHA = 0.05


@dataclass(frozen=True)
class Step:
    """An arm, the next best after it, and how sure it is that it is better. The last arm has nobody below it.

    Arms whose figures are the same in every unit share a place: below each is whoever is below them all.
    """

    arm: str
    below: str | None
    test: Paired | None  # its p is corrected

    @property
    def sure(self) -> bool:
        """The paper's asterisk: significantly higher than the next best."""
        return self.test is not None and self.test.difference > 0 and self.test.p < ALPHA


@dataclass(frozen=True)
class Ladder:
    """The trained arms under one figure, best first."""

    figure: Figure
    steps: Sequence[Step]

    @property
    def order(self) -> list[str]:
        """The names, best first."""
        return [step.arm for step in self.steps]

    def step(self, arm: str) -> Step:
        """The step of an arm."""
        return next(step for step in self.steps if step.arm == arm)


def ladders(results: Results, severity: float, evaluation: str, protocol: str) -> list[Ladder]:
    """A ladder for each metric of the paper's tables; Holm's correction is over all neighbours in all of them."""
    figures = [Figure(evaluation, protocol, *metric) for metric in METRICS]
    raw = [_ladder(results, severity, figure) for figure in figures]
    tests = [step.test.p for ladder in raw for step in ladder.steps if step.test is not None]
    corrected = iter(holm(np.array(tests)).tolist())
    every = [
        replace(
            ladder,
            steps=[
                step if step.test is None else replace(step, test=replace(step.test, p=next(corrected)))
                for step in ladder.steps
            ],
        )
        for ladder in raw
    ]
    return [_with_ties(results, severity, ladder) for ladder in every]


def _ladder(results: Results, severity: float, figure: Figure) -> Ladder:
    order = results.order(severity, figure)
    tested = [Step(arm, below, results.against(severity, arm, below, figure)) for arm, below in pairwise(order)]
    return Ladder(figure, [*tested, Step(order[-1], None, None)])


def _with_ties(results: Results, severity: float, ladder: Ladder) -> Ladder:
    """An arm that is the same as the next in every unit has the step of that one."""
    value = {arm: results.sample(severity, arm, ladder.figure) for arm in ladder.order}
    steps: list[Step] = []
    for step in reversed(ladder.steps):
        tied = step.below is not None and np.array_equal(value[step.arm], value[step.below])
        steps.append(replace(steps[-1], arm=step.arm) if tied else step)
    return replace(ladder, steps=steps[::-1])
