"""What the recipe reports as a gain over naive, beside what it gains on true relevance."""

from dataclasses import dataclass

from unveil.evaluation.statistics import Paired
from unveil.experiment.outcome import BOUND, STANDARD, TRUE
from unveil.experiment.reproduce.ranking import ALPHA
from unveil.experiment.reproduce.results import Figure, Results
from unveil.experiment.reproduce.words import against_base

#: Metrics that the paper reports on real data.
METRICS = (("NDCG", 10), ("Recall", 10))


@dataclass(frozen=True)
class Gain:
    """An arm less naive under one metric: as the recipe reports it, and on true relevance among all items."""

    arm: str
    metric: tuple[str, int]
    reported: Paired
    true: Paired

    @property
    def claimed(self) -> bool:
        """Whether the recipe would report a gain."""
        return self.reported.difference > 0 and self.reported.p < ALPHA

    @property
    def verdict(self) -> str:
        """What becomes of it."""
        if not self.reported.difference > 0:
            return "missed" if self.truth == "holds" else "none reported"
        return self.truth if self.claimed else f"unsure; {self.truth}"

    @property
    def truth(self) -> str:
        """What a gain is on true relevance."""
        if not self.true.p < ALPHA:
            return "may be none"
        return "holds" if self.true.difference > 0 else "is a loss"


def by_popularity(results: Results) -> str:
    """The protocol with negatives drawn by popularity."""
    return next(name for name in results.protocols if name.startswith("popular-"))


def reported(results: Results, metric: tuple[str, int]) -> Figure:
    """The figure of the paper's recipe: what was taken, against popular negatives."""
    return Figure(STANDARD, by_popularity(results), *metric)


def gains(results: Results, severity: float) -> list[Gain]:
    """Every arm that needs no truth, under both metrics; p-values after Holm's correction over the arms."""
    return [
        Gain(arm, metric, claim[arm], true[arm])
        for metric in METRICS
        for claim, true in [
            (
                against_base(results, severity, reported(results, metric)),
                against_base(results, severity, Figure(TRUE, "full", *metric)),
            )
        ]
        for arm in claim
        if arm != BOUND
    ]
