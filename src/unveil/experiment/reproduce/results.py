"""The figures of a grid: means, intervals and paired tests over replicates, or over worlds where there are several.

Shapes: C cases (one a user), N units, W worlds, R replicates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.metrics import rank_metrics
from unveil.evaluation.result import parts
from unveil.evaluation.statistics import Paired, paired, ratio_interval
from unveil.experiment.outcome import BASE, BOUND, Estimate
from unveil.studies.results import BASELINES

Units = Literal["worlds", "replicates", "users"]
Floats = NDArray[np.float64]
#: Lengths of list at which the target's rank is judged.
PLACES = (5, 10)


class Figure(NamedTuple):
    """One way to judge: what the targets are, what they are ranked against, and the metric of their rank."""

    evaluation: str
    protocol: str
    metric: str
    k: int

    @property
    def name(self) -> str:
        """NDCG@10."""
        return f"{self.metric}@{self.k}"


class Place(NamedTuple):
    """Where a cell stands in the grid."""

    world: int
    severity: float
    replicate: int
    arm: str


@dataclass(frozen=True, eq=False)
class Results:
    """The cells of a grid. Every arm has every world, severity and replicate.

    The units are what was drawn anew: with one world its replicates; with several the worlds, each with the mean of
    its replicates, so that an interval holds the variance of both (a balanced two-stage design: the means of the
    clusters are the sample). With one world and one replicate they are the users, which says nothing of another
    draw or training.
    """

    cells: Mapping[Place, Mapping[str, Any]]
    severities: Sequence[float]
    worlds: int
    replicates: int
    arms: Sequence[str]

    @property
    def trained(self) -> list[str]:
        """The arms that were trained."""
        return [arm for arm in self.arms if arm not in BASELINES]

    @property
    def units(self) -> Units:
        """What means, intervals and tests are over."""
        return "worlds" if self.worlds > 1 else "replicates" if self.replicates > 1 else "users"

    @cached_property
    def evaluations(self) -> list[str]:
        """What the targets are: the truth first, where there is one."""
        return list(self._any["ranks"])

    @cached_property
    def protocols(self) -> list[str]:
        """What targets are ranked against: full, uniform-N and, on real data, popular-N."""
        return list(self._any["ranks"][self.evaluations[0]])

    @property
    def sampled(self) -> str:
        """The protocol of the paper: negatives drawn uniformly."""
        return next(name for name in self.protocols if name.startswith("uniform-"))

    @cached_property
    def figures(self) -> list[Figure]:
        """All figures of the targets' ranks."""
        return [
            Figure(evaluation, protocol, each.name, k)
            for evaluation in self.evaluations
            for protocol in self.protocols
            for each in rank_metrics()
            for k in PLACES
        ]

    @cached_property
    def list_figures(self) -> list[Figure]:
        """All figures of the recommended lists."""
        return [Figure(self.evaluations[0], *parts(name)) for name in self._any["lists"]]

    @property
    def _any(self) -> Mapping[str, Any]:
        return next(iter(self.cells.values()))

    def cell(self, severity: float, arm: str, world: int = 0, replicate: int = 0) -> Mapping[str, Any]:
        """One cell."""
        return self.cells[Place(world, severity, replicate, arm)]

    def every(self, severity: float, arm: str) -> list[Mapping[str, Any]]:
        """The cells of an arm at a severity, world by world."""
        grid = [(world, replicate) for world in range(self.worlds) for replicate in range(self.replicates)]
        return [self.cell(severity, arm, world, replicate) for world, replicate in grid]

    def sample(self, severity: float, arm: str, figure: Figure) -> Floats:
        """value_N of the units."""
        if self.units == "users" and figure in self.figures:
            return _per_case(self.cell(severity, arm), figure)
        value_WR = self.by_replicate(severity, arm, figure)
        return np.asarray(value_WR.mean(axis=1) if self.worlds > 1 else value_WR[0])

    def by_replicate(self, severity: float, arm: str, figure: Figure) -> Floats:
        """value_WR of every world and replicate."""
        value = np.array([_mean(cell, figure) for cell in self.every(severity, arm)])
        return value.reshape(self.worlds, self.replicates)

    def estimate(self, severity: float, arm: str, figure: Figure, level: float = 0.95) -> Estimate:
        """Mean over the units and the interval of Student's t; no interval where there is but one unit."""
        found = paired(value := self.sample(severity, arm, figure), np.zeros(len(value)), level=level)
        if len(value) < 2:
            return Estimate(found.difference, None, None, 1)
        return Estimate(found.difference, float(found.low), float(found.high), found.n)

    def against(self, severity: float, one: str, other: str, figure: Figure) -> Paired:
        """How much higher one arm is than another, unit by unit."""
        return paired(self.sample(severity, one, figure), self.sample(severity, other, figure))

    def order(self, severity: float, figure: Figure) -> list[str]:
        """The trained arms, best mean first."""
        return sorted(self.trained, key=lambda arm: -self.estimate(severity, arm, figure).mean)

    def gap_closed(self, arm: str, figure: Figure, severities: Sequence[float] | None = None) -> Estimate | None:
        """Σ_p (arm − naive) / Σ_p (ideal − naive), with Fieller's interval; None without a gap or its two ends.

        No interval where there are no units to pair: users of several severities.
        """
        if not {BASE, BOUND} <= set(self.arms):
            return None
        along = severities or self.severities
        base_N, bound_N, own_N = (self._sum(along, each, figure) for each in (BASE, BOUND, arm))
        if not (gap := float(np.mean(bound_N - base_N))) > 0:
            return None
        low, high = ratio_interval(own_N - base_N, bound_N - base_N) or (None, None)
        return Estimate(float(np.mean(own_N - base_N)) / gap, low, high, len(own_N))

    def _sum(self, severities: Sequence[float], arm: str, figure: Figure) -> Floats:
        """Σ_p of an arm, unit by unit. A harsher log may have lost users: those of two severities are no pairs."""
        every = [self.sample(severity, arm, figure) for severity in severities]
        if self.units == "users" and len(every) > 1:
            every = [value_C.mean(keepdims=True) for value_C in every]
        return np.asarray(np.sum(every, axis=0))


def _per_case(cell: Mapping[str, Any], figure: Figure) -> Floats:
    rank_C = np.array(cell["ranks"][figure.evaluation][figure.protocol])
    judge = next(each for each in rank_metrics() if each.name == figure.metric)
    return np.asarray(judge(rank_C, figure.k))


def _mean(cell: Mapping[str, Any], figure: Figure) -> float:
    name = f"{figure.protocol}:{figure.name}"
    return float(cell["lists"][name]) if name in cell["lists"] else float(_per_case(cell, figure).mean())
