"""Is each arm better than the next best? Paired tests, corrected over the whole table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from unveil.evaluation.stats import Paired, holm
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
    """A ladder for each metric of the paper's tables; Holm's correction is over all steps of all of them."""
    figures = [Figure(evaluation, protocol, *metric) for metric in METRICS]
    raw = [_ladder(results, severity, figure) for figure in figures]
    tests = [step.test.p for ladder in raw for step in ladder.steps if step.test is not None]
    corrected = iter(holm(np.array(tests)).tolist())
    return [
        replace(
            ladder,
            steps=[
                step if step.test is None else replace(step, test=replace(step.test, p=next(corrected)))
                for step in ladder.steps
            ],
        )
        for ladder in raw
    ]


def _ladder(results: Results, severity: float, figure: Figure) -> Ladder:
    order = results.order(severity, figure)
    steps = [Step(order[-1], None, None)]
    for below, arm in pairwise(reversed(order)):
        same = np.array_equal(*(results.sample(severity, each, figure) for each in (arm, below)))
        step = replace(steps[-1], arm=arm) if same else Step(arm, below, results.against(severity, arm, below, figure))
        steps.append(step)
    return Ladder(figure, steps[::-1])
