"""Plan: which cells tell what becomes of the gains that the recipe reports."""

from dataclasses import dataclass

from unveil.experiment.reproduce.plan import Plan
from unveil.studies.arms import check_gain


@dataclass(frozen=True)
class RecipePlan(Plan):
    """A plan with naive, and something that may gain over it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_gain(self.estimators)
