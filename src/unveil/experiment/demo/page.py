"""The page of the demo: what each loss learnt, what the log shows and hides, and how it was all made."""

from unveil.experiment.demo import dots, tables, training
from unveil.experiment.demo.log_sections import log_sections
from unveil.experiment.demo.made import made
from unveil.experiment.demo.run import Shown
from unveil.experiment.demo.words import caution, closes, reading
from unveil.experiment.outcome import BASE, BOUND, Outcome
from unveil.report.names import named
from unveil.report.page import Block, Figures, KeyFigure, Note, Page, Section, Text

_LEDE = (
    "This log comes from a small made-up world. So we know what no real log tells: how likely every item was to be "
    "shown to every user at every step (exposure, θ), and how likely it was to please (relevance, γ). Users can only "
    "take what they are shown. Four models were trained on that log, alike in everything but the loss, and are judged "
    "here by what users would have liked best, beside what they happened to take."
)
_LOSSES = (
    "All four learn to fill in hidden items of the users’ histories. The naive loss takes the log at its word. IPS and "
    "ITPS count what was taken the more, the less likely it was to be seen: IPS by the mean exposure of the item over "
    "all steps, ITPS by its exposure at the very step. The ideal loss is told the user’s true favourite at each step: "
    "no real log could, so it marks what is to be gained."
)


def demo_page(shown: Shown) -> Page:
    """The whole page."""
    return Page(
        title="What a log shows, what it hides, and what can be learnt from it",
        lede=_LEDE,
        key_figures=_key_figures(shown),
        sections=[
            Section("What each loss learnt", _results(shown.outcome)),
            Section("How they were trained", _training(shown.outcome)),
            *log_sections(shown.truth, shown.severities),
            Section("How it was made", made(shown)),
        ],
    )


def _key_figures(shown: Shown) -> list[KeyFigure]:
    outcome, log = shown.outcome, shown.truth.figures
    return [
        KeyFigure(f"{log.interactions:,}", f"interactions of {log.users:,} users with {log.items:,} items"),
        KeyFigure(f"{shown.truth.favourite_taken:.1%}", "of them are with the user’s true favourite"),
        *(KeyFigure(f"{outcome.estimate(arm).mean:.3f}", _key_label(outcome, arm)) for arm in outcome.trained),
    ]


def _key_label(outcome: Outcome, arm: str) -> str:
    if arm in (BASE, BOUND):
        return f"{named(arm)} loss, NDCG@10 on true favourites"
    return f"{named(arm)} loss; {closes(outcome, arm)}"


def _results(outcome: Outcome) -> list[Block]:
    first, *rest = reading(outcome)
    return [
        Text(_LOSSES),
        Note(first),
        Figures(dots.figures(outcome)),
        *(Text(paragraph) for paragraph in rest),
        tables.results(outcome),
        tables.against_naive(outcome),
        Note(caution(outcome)),
    ]


def _training(outcome: Outcome) -> list[Block]:
    return [
        Text(
            "The propensities are the world’s own. Their inverses are not free: a few events that were unlikely to be "
            "seen speak for many. How many equally weighted events the sample is worth says how much is left to learn "
            "from."
        ),
        *training.warnings(outcome),
        Figures([training.weights_figure(outcome), training.learning(outcome)]),
        training.weights_table(outcome),
    ]
