"""The dots of the demo's page: each way to recommend with its mean and interval, under four ways to judge."""

from unveil.experiment.demo.tables import interval
from unveil.experiment.demo.words import RELEVANCE
from unveil.experiment.outcome import HEADLINE, STANDARD, TRUE, Outcome
from unveil.report import charts
from unveil.report.names import COLOURS, named
from unveil.report.page import Figure


def figures(outcome: Outcome) -> list[Figure]:
    """By the truth, by the log, by the truth as in the paper, and by what only a world can tell."""
    drawn = outcome.sampled
    return [
        dots(
            outcome,
            "Judged by the truth: is the true favourite found?",
            "NDCG@10 of the true favourite, best first:",
            f"The item of highest γ at the case’s own user and step, ranked among all items. Mean over "
            f"{outcome.units}, 95% interval.",
            TRUE,
        ),
        dots(
            outcome,
            "Judged by the log: is the item that was taken found?",
            "NDCG@10 of the item that was taken, best first:",
            "The standard evaluation of the same models on the same cases. Its target had to be shown to be taken.",
            STANDARD,
        ),
        dots(
            outcome,
            f"Judged by the truth, among {drawn.partition('-')[2]} items only",
            "NDCG@10 of the true favourite among drawn items, best first:",
            "The same favourites, ranked against items drawn uniformly, as in the paper: an easier question.",
            TRUE,
            f"{drawn}:NDCG@10",
        ),
        dots(
            outcome,
            "How relevant is what is recommended?",
            "Mean true relevance of the ten recommended items, best first:",
            "Only a world can tell: the mean γ of the ten items, at the case’s own user and step.",
            TRUE,
            RELEVANCE,
        ),
    ]


def dots(outcome: Outcome, title: str, alt: str, caption: str, evaluation: str, column: str = HEADLINE) -> Figure:
    """One figure of every arm with its interval, best first."""
    arms = sorted(outcome.arms, key=lambda arm: -outcome.estimate(arm, evaluation, column).mean)
    found = {arm: outcome.estimate(arm, evaluation, column) for arm in arms}
    protocol, _, name = column.partition(":")
    drawn = [
        charts.Dot(
            named(arm),
            each.mean,
            _or(each.low, each.mean),
            _or(each.high, each.mean),
            COLOURS.get(arm),
            f"{named(arm)}: {each.mean:.3f}{interval(each)}",
        )
        for arm, each in found.items()
    ]
    return Figure(
        title,
        charts.intervals(drawn, _axis(name), highest(outcome, column), _slug(evaluation, protocol, name)),
        f"{alt} {', '.join(f'{dot.label} {dot.mean:.3f}' for dot in drawn)}.",
        caption,
    )


def highest(outcome: Outcome, column: str) -> float:
    """The upper end of the axis: the same for both evaluations."""
    found = [outcome.estimate(arm, by, column) for arm in outcome.arms for by in _evaluations(column)]
    return max(_or(each.high, each.mean) for each in found)


def _evaluations(column: str) -> tuple[str, ...]:
    return (TRUE, STANDARD) if column == HEADLINE else (TRUE,)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _axis(name: str) -> str:
    return "mean true relevance γ of the top 10" if name.startswith("Relevance") else name


def _slug(evaluation: str, protocol: str, name: str) -> str:
    return f"{evaluation.split()[0]}-{protocol}-{name.partition('@')[0].lower()}"
