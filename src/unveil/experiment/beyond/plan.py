"""Plan: which cells tell how much of a gap is closed."""

from dataclasses import dataclass

from unveil.experiment.reproduce.plan import Plan
from unveil.studies.arms import check_gap


@dataclass(frozen=True)
class BeyondPlan(Plan):
    """A plan with both ends of the gap, and something between them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gap(self.estimators)
