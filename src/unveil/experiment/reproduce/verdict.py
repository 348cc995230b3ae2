"""Our figures beside the paper's: near enough, and in the same order?"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from unveil.experiment.outcome import Estimate
from unveil.experiment.reproduce.published import METRICS, TABLES, published
from unveil.experiment.reproduce.results import Figure, Results

#: A replication is taken to succeed within this share of the published figure.
NEAR = 0.05


@dataclass(frozen=True)
class Beside:
    """One of our figures and the paper's."""

    arm: str
    figure: Figure
    ours: Estimate
    paper: float

    @property
    def deviation(self) -> float:
        """(ours − paper) / paper."""
        return self.ours.mean / self.paper - 1

    @property
    def near(self) -> bool:
        """Within 5% of the published figure."""
        return abs(self.deviation) <= NEAR

    @property
    def covered(self) -> bool | None:
        """Whether our interval holds the published figure; None where there is no interval."""
        if self.ours.low is None or self.ours.high is None:
            return None
        return self.ours.low <= self.paper <= self.ours.high

    def told(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "estimator": self.arm,
            "metric": self.figure.metric,
            "k": self.figure.k,
            "mean": self.ours.mean,
            "paper": self.paper,
            "deviation": self.deviation,
            "within_5_percent": self.near,
            "interval_holds_paper": self.covered,
        }


def beside(results: Results, severity: float, evaluation: str, protocol: str) -> list[Beside]:
    """Every cell of the paper's table that we have, arm by arm. Nothing where it has no such table."""
    return [
        Beside(arm, figure, results.estimate(severity, arm, figure), paper)
        for arm in results.trained
        for figure in (Figure(evaluation, protocol, *metric) for metric in METRICS)
        if (paper := published(arm, *figure, severity)) is not None
    ]


def paper_order(evaluation: str, metric: tuple[str, int], arms: Sequence[str]) -> list[str]:
    """The paper's arms among ours, best first."""
    table, place = TABLES[evaluation], METRICS.index(metric)
    return sorted((arm for arm in table if arm in arms), key=lambda arm: -table[arm][place])


def same_order(results: Results, severity: float, figure: Figure) -> bool:
    """Whether the means of the paper's arms stand in the paper's order, no two of them equal."""
    theirs = paper_order(figure.evaluation, (figure.metric, figure.k), results.trained)
    means = [results.estimate(severity, arm, figure).mean for arm in theirs]
    return all(above > below for above, below in pairwise(means))
