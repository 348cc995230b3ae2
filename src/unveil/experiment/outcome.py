"""The outcome of a few trials in one table: means with intervals, differences from a base, and the gap closed.

With one trial the units are its users; with more, everything random was drawn again for each, and trials are the units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unveil.evaluation.result import column, per_user
from unveil.evaluation.statistics import Paired, holm, paired
from unveil.studies.results import BASE as BASE
from unveil.studies.results import BOUND as BOUND
from unveil.studies.results import STANDARD as STANDARD
from unveil.studies.results import TRUE as TRUE
from unveil.studies.results import Estimate as Estimate
from unveil.studies.trial import Arm, Trial

#: The figure that conclusions are drawn from, as a column of an evaluation's frame.
HEADLINE = "full:NDCG@10"


@dataclass(frozen=True, eq=False)
class Outcome:
    """Trials with the same arms. `table` has a row for each estimator, evaluation, protocol, metric and k."""

    trials: Sequence[Trial]

    @property
    def arms(self) -> list[str]:
        """The names of all arms: first those that learn next to nothing."""
        return [arm.name for arm in self.trials[0].arms]

    @property
    def trained(self) -> list[str]:
        """The arms that were trained."""
        return [arm.name for arm in self.trials[0].arms if arm.fitted is not None]

    @property
    def units(self) -> str:
        """What means, intervals and tests are over."""
        return f"{self.table['n'][0]:,} {'users' if len(self.trials) == 1 else 'replicates'}"

    @property
    def sampled(self) -> str:
        """The protocol with negatives drawn uniformly, such as uniform-100."""
        columns = self.trials[0].arms[0].truth.frame.columns
        return next(name for name in columns if name.startswith("uniform-")).partition(":")[0]

    @cached_property
    def table(self) -> pl.DataFrame:
        """estimator, evaluation, protocol, metric, k, mean, low, high, n."""
        tables = [_summary(trial) for trial in self.trials]
        return tables[0] if len(tables) == 1 else _over_replicates(tables)

    @cached_property
    def _estimates(self) -> dict[tuple[str, str, str], Estimate]:
        return {
            (row["estimator"], row["evaluation"], column(row["protocol"], row["metric"], row["k"])): Estimate(
                row["mean"], row["low"], row["high"], row["n"]
            )
            for row in self.table.iter_rows(named=True)
        }

    def estimate(self, arm: str, evaluation: str = TRUE, column: str = HEADLINE) -> Estimate:
        """One figure of the table."""
        return self._estimates[arm, evaluation, column]

    def ranking(self, evaluation: str = TRUE, column: str = HEADLINE) -> list[str]:
        """The trained arms, best first."""
        return sorted(self.trained, key=lambda arm: -self.estimate(arm, evaluation, column).mean)

    @cached_property
    def differences(self) -> dict[str, Paired]:
        """The trained arms less the naive one, in the headline on true relevance; p-values after Holm's correction."""
        others = [arm for arm in self.trained if arm != BASE]
        found = [paired(self._unit_values(arm), self._unit_values(BASE)) for arm in others]
        corrected = holm(np.array([each.p for each in found])).tolist()
        return {
            arm: Paired(each.difference, each.low, each.high, each.effect, p, each.n)
            for arm, each, p in zip(others, found, corrected, strict=True)
        }

    def gap_closed(self, arm: str) -> float | None:
        """(arm − naive) / (ideal − naive) in the headline on true relevance; None where there is no gap to close."""
        base, bound = self.estimate(BASE).mean, self.estimate(BOUND).mean
        return (self.estimate(arm).mean - base) / (bound - base) if bound > base else None

    def _unit_values(self, arm: str) -> NDArray[np.float64]:
        """The headline of an arm for each user, or for each replicate."""
        values = [per_user(trial.arm(arm).truth.frame)[HEADLINE].to_numpy() for trial in self.trials]
        return values[0] if len(values) == 1 else np.array([value_U.mean() for value_U in values])


def _summary(trial: Trial) -> pl.DataFrame:
    return pl.concat([part for arm in trial.arms for part in _of_arm(arm)])


def _of_arm(arm: Arm) -> list[pl.DataFrame]:
    """Both evaluations; the lists are the same in both and are told once."""
    standard = arm.standard.summary.filter(pl.col("protocol") != "lists")
    return [
        summary.select(pl.lit(arm.name).alias("estimator"), pl.lit(name).alias("evaluation"), pl.all())
        for name, summary in ((TRUE, arm.truth.summary), (STANDARD, standard))
    ]


def _over_replicates(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Mean over replicates and the interval of Student's t."""
    value_RM = np.stack([table["mean"].to_numpy() for table in tables])
    spread = [paired(value_R, np.zeros(len(tables))) for value_R in value_RM.T]
    return tables[0].with_columns(
        pl.Series("mean", [each.difference for each in spread]),
        pl.Series("low", [each.low for each in spread]),
        pl.Series("high", [each.high for each in spread]),
        pl.Series("n", [each.n for each in spread], pl.Int64),
    )
