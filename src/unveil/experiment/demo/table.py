"""The demo's results for a terminal: a table of eighty columns."""

from unveil.experiment.demo.log import Truth
from unveil.experiment.demo.tables import interval
from unveil.experiment.demo.words import RELEVANCE, gap_text
from unveil.experiment.outcome import STANDARD, TRUE, Outcome
from unveil.report.names import named

HEAD = ("loss", "true favourite\nNDCG@10 [95%]", "\nRecall@10", "taken item\nNDCG@10", "top 10\nmean γ", "gap\nclosed")
FOOT = (
    "True favourite: the target is the item of highest relevance γ at the case’s own user and step. Taken item: the "
    "standard evaluation. Both rank among all items. Gap: from the naive to the ideal loss."
)


def rows(outcome: Outcome) -> list[list[str]]:
    """A row for each arm."""
    return [_row(outcome, arm) for arm in outcome.arms]


def _row(outcome: Outcome, arm: str) -> list[str]:
    headline = outcome.estimate(arm)
    others = ((TRUE, "full:Recall@10"), (STANDARD, "full:NDCG@10"), (TRUE, RELEVANCE))
    gap = gap_text(outcome, arm) if arm in outcome.trained else "–"
    figures = [f"{outcome.estimate(arm, by, column).mean:.3f}" for by, column in others]
    return [named(arm), f"{headline.mean:.3f}{interval(headline)}", *figures, gap]


def log_line(truth: Truth) -> str:
    """The log and its world in a sentence."""
    log = truth.figures
    return (
        f"{truth.world!r}: {log.interactions:,} interactions, "
        f"{truth.favourite_taken:.1%} of them with the user's true favourite"
    )
