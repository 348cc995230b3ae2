"""How well a world was fitted, beside what needs no factors at all."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """A metric on tuples that were not learnt from."""

    valid: float
    test: float


@dataclass(frozen=True)
class TaskReport:
    """Of one task: the metric, and who reached what."""

    metric: str
    tuples: int  # learnt from
    mean: Score  # the same value for every tuple
    bias_only: Score  # user, item and step each add their own
    recipe: Score  # the recipe's prediction
    world: Score  # the factors that the world is made of


@dataclass(frozen=True)
class FitReport:
    """What a world was fitted to, how, and how well."""

    recipe: str
    settings: dict[str, Any]
    relevance: TaskReport
    exposure: TaskReport

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)
