"""The figures of RQ4: those of any grid, but for one severity and, with one replicate, intervals over users.

Shapes: U users, F figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unveil.evaluation.statistics import bootstrap
from unveil.experiment.outcome import Estimate
from unveil.experiment.reproduce.results import Figure, Place, Results

#: Real exposure is taken as it is: what a severity of 1 means in a world.
AS_IT_IS = 1.0


@dataclass(frozen=True, eq=False)
class RealResults(Results):
    """The cells of a real log: every arm in every replicate."""

    @classmethod
    def of(cls, cells: Mapping[tuple[str, int], Mapping[str, Any]], arms: list[str], replicates: int) -> "RealResults":
        """Cells by arm and replicate."""
        placed = {Place(0, AS_IT_IS, replicate, arm): cell for (arm, replicate), cell in cells.items()}
        return cls(placed, (AS_IT_IS,), 1, replicates, arms)

    @property
    def sampled(self) -> str:
        """The protocol of the paper: negatives drawn by popularity."""
        return next(name for name in self.protocols if name.startswith("popular-"))

    def estimate(self, severity: float, arm: str, figure: Figure, level: float = 0.95) -> Estimate:
        """Mean and interval: Student's t over replicates; with one of them, percentile bootstrap over users."""
        if self.units == "users" and figure in self._intervals[arm]:
            return self._intervals[arm][figure]
        return super().estimate(severity, arm, figure, level)

    @cached_property
    def _intervals(self) -> dict[str, dict[Figure, Estimate]]:
        return {arm: self._bootstrapped(arm) for arm in self.arms}

    def _bootstrapped(self, arm: str) -> dict[Figure, Estimate]:
        """All figures of an arm from the same resamples of its users."""
        value_UF = np.stack([self.sample(AS_IT_IS, arm, figure) for figure in self.figures], axis=1)
        low_F, high_F = bootstrap(value_UF, np.random.default_rng(0))
        found = zip(self.figures, value_UF.mean(0), low_F, high_F, strict=True)
        return {
            figure: Estimate(float(mean), float(low), float(high), len(value_UF)) for figure, mean, low, high in found
        }
