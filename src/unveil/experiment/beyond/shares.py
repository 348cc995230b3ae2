"""Shares of the gap from naive to ideal, over two levels: worlds, and replicates inside each of them.

Shapes: W worlds, R replicates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unveil.evaluation.statistics import Paired, holm, ratio_interval
from unveil.experiment.outcome import BASE, BOUND, TRUE, Estimate
from unveil.experiment.reproduce.published import METRICS as PUBLISHED
from unveil.experiment.reproduce.published import TABLES
from unveil.experiment.reproduce.ranking import ALPHA
from unveil.experiment.reproduce.results import Figure, Floats, Results
from unveil.experiment.reproduce.words import learnable

#: The two figures of which the paper's shares are known.
METRICS = (("NDCG", 10), ("Recall", 10))


@dataclass(frozen=True)
class Share:
    """What one arm closes at one severity. `gap` is over the units of the results, `worlds` over each one's replicates.

    `test` is the paired difference from naive over the units; its p is corrected (Holm) over all arms and severities.
    """

    arm: str
    severity: float
    figure: Figure
    gap: Estimate | None
    test: Paired
    worlds: tuple[Estimate | None, ...]

    @property
    def below(self) -> bool:
        """The mean is below naive's, surely or not."""
        return self.test.difference < 0

    @property
    def surely(self) -> bool:
        """Whether it can be told from naive."""
        return self.test.p < ALPHA

    @property
    def lowest(self) -> float | None:
        """The share in the world where it is lowest."""
        found = [each.mean for each in self.worlds if each is not None]
        return min(found) if found else None


def shares(results: Results, figure: Figure) -> list[Share]:
    """Of all arms that need no truth, at all severities."""
    raw = [
        Share(
            arm,
            severity,
            figure,
            results.gap_closed(arm, figure, [severity]),
            results.against(severity, arm, BASE, figure),
            of_worlds(results, arm, figure, severity),
        )
        for arm in learnable(results)
        for severity in results.severities
    ]
    corrected = holm(np.array([share.test.p for share in raw])).tolist()
    return [replace(share, test=replace(share.test, p=p)) for share, p in zip(raw, corrected, strict=True)]


def of_worlds(results: Results, arm: str, figure: Figure, severity: float) -> tuple[Estimate | None, ...]:
    """The share in each world by itself, with Fieller's interval over its replicates; None where there is no gap."""
    base_WR, bound_WR, own_WR = (results.by_replicate(severity, each, figure) for each in (BASE, BOUND, arm))
    return tuple(
        _ratio(own_R - base_R, bound_R - base_R)
        for own_R, base_R, bound_R in zip(own_WR, base_WR, bound_WR, strict=True)
    )


def _ratio(own_R: Floats, gap_R: Floats) -> Estimate | None:
    gap = float(gap_R.mean())
    if not gap > 0:
        return None
    low, high = ratio_interval(own_R, gap_R) or (None, None)
    return Estimate(float(own_R.mean()) / gap, low, high, len(own_R))


@dataclass(frozen=True)
class Levels:
    """Where the spread of a difference from naive comes from: standard deviations of worlds, and of replicates."""

    worlds: float
    replicates: float


def levels(results: Results, arm: str, figure: Figure, severity: float) -> Levels | None:
    """One-way analysis of variance of d_WR = arm − naive: σ²_world = (MS between − MS within) / R, at least 0."""
    difference_WR = results.by_replicate(severity, arm, figure) - results.by_replicate(severity, BASE, figure)
    worlds, replicates = difference_WR.shape
    if worlds < 2 or replicates < 2:
        return None
    within = float(difference_WR.var(axis=1, ddof=1).mean())
    between = float(difference_WR.mean(axis=1).var(ddof=1))
    return Levels(float(np.sqrt(max(0.0, between - within / replicates))), float(np.sqrt(within)))


def published(metric: tuple[str, int], arm: str = "itps") -> float:
    """The share that the paper's own table gives an arm at p = 1."""
    place = PUBLISHED.index(metric)
    naive, ideal, own = (TABLES[TRUE][name][place] for name in (BASE, BOUND, arm))
    return (own - naive) / (ideal - naive)


def everywhere(found: Sequence[Share], least: float) -> list[str]:
    """The arms whose share is at least so much at every severity, by the means."""
    arms = dict.fromkeys(share.arm for share in found)
    return [arm for arm in arms if all(s.gap is not None and s.gap.mean >= least for s in found if s.arm == arm)]
