"""The page of a loop: what became of each model's lists, round by round."""

from collections.abc import Sequence

from unveil.experiment.loop.figures import FIGURES, HEADLINE, Group
from unveil.experiment.loop.made import made
from unveil.experiment.loop.outcome import LoopOutcome
from unveil.experiment.loop.plots import Curve, bands
from unveil.experiment.loop.run import Looped
from unveil.experiment.loop.words import caution, figure, reading
from unveil.experiment.outcome import Estimate
from unveil.report.names import COLOURS, listed, named
from unveil.report.page import Cell, Column, Figure, Figures, KeyFigure, Note, Page, Section, Table, Text
from unveil.wording import quantity

_LEDE = (
    "A recommender is trained on what users took, and users take what a recommender shows them. Here that circle is "
    "closed: each round a model recommends unseen items to every user, users respond, and the model is trained on the "
    "log with what they took. The plots show what becomes of the lists, the log and, in a world, of the users."
)
_SECTIONS: Sequence[tuple[str, Group]] = (
    ("Novelty and popularity", "novelty"),
    ("Diversity", "diversity"),
    ("What was taken", "log"),
    ("By the truth", "truth"),
    ("Training", "training"),
)


def loop_page(looped: Looped, command: str) -> Page:
    """The whole page."""
    plan, outcome = looped.plan, looped.outcome
    first, *rest = reading(plan, outcome)
    parts = [(title, _figures(looped, group)) for title, group in _SECTIONS]
    return Page(
        title="What feedback does to recommendations",
        lede=_LEDE,
        key_figures=[KeyFigure(*each) for each in _key_figures(looped)],
        sections=[
            Section("What came of it", [Note(first), *map(Text, rest), table(looped), Note(caution(plan, outcome))]),
            *(Section(title, [Figures(figures)]) for title, figures in parts if figures),
            Section("How it was made", made(looped, command)),
        ],
    )


def _key_figures(looped: Looped) -> list[tuple[str, str]]:
    plan, outcome = looped.plan, looped.outcome
    told = f"{quantity(outcome.rounds, 'round')} of feedback, {quantity(outcome.replicates, 'replicate')}"
    last = [
        (
            f"{outcome.estimate(model, HEADLINE).mean:.2f}",
            f"{figure(plan, HEADLINE)} of {named(model)} in the last round",
        )
        for model in outcome.models
    ]
    return [(f"{outcome.rounds}", told), *last]


def _figures(looped: Looped, group: Group) -> list[Figure]:
    there = looped.outcome.figures
    drawn = [key for key in there if FIGURES[key].group == group and len(looped.outcome.rounds_of(key)) > 1]
    return [_drawn(looped, key) for key in drawn]


def _drawn(looped: Looped, key: str) -> Figure:
    plan, outcome = looped.plan, looped.outcome
    models, rounds, title = outcome.models_of(key), outcome.rounds_of(key), figure(plan, key)
    curves = [_curve(outcome, model, key, rounds) for model in models]
    return Figure(
        title,
        bands(curves, title, f"loop-{key}"),
        f"{title} along the rounds for {listed(models)}.",
        FIGURES[key].explained(plan.loop.k),
        Table(
            f"{title} by round",
            [Column("round", True), *(Column(named(model), True) for model in models)],
            [[str(round), *(cell(outcome.estimate(model, key, round), key) for model in models)] for round in rounds],
            sortable=False,
        ),
    )


def _curve(outcome: LoopOutcome, model: str, key: str, rounds: Sequence[int]) -> Curve:
    found = [outcome.estimate(model, key, round) for round in rounds]
    low, high = [each.low for each in found], [each.high for each in found]
    return Curve(
        named(model),
        COLOURS.get(model),
        rounds,
        [each.mean for each in found],
        None if None in low else [float(end or 0) for end in low],
        None if None in high else [float(end or 0) for end in high],
        [f"{named(model)}, round {round}: {text(each, key)}" for round, each in zip(rounds, found, strict=True)],
    )


def table(looped: Looped) -> Table:
    """Every figure in the first round and in the last."""
    plan, outcome = looped.plan, looped.outcome
    keys = [key for key in outcome.figures if FIGURES[key].group != "training" and len(outcome.rounds_of(key)) > 1]
    rows: list[list[Cell | str]] = [
        [figure(plan, key), *(_from_to(outcome, model, key) for model in outcome.models)] for key in keys
    ]
    caption = f"From the first round that has a figure to round {outcome.rounds}: means over "
    return Table(
        caption + quantity(outcome.replicates, "replicate"),
        [Column("figure"), *(Column(named(model), True) for model in outcome.models)],
        rows,
        sortable=False,
    )


def _from_to(outcome: LoopOutcome, model: str, key: str) -> Cell | str:
    if model not in outcome.models_of(key):
        return "–"
    first, *_, last = outcome.rounds_of(key)
    start, end = (outcome.estimate(model, key, round).mean for round in (first, last))
    digits = FIGURES[key].digits
    return Cell(f"{start:,.{digits}f} → {end:,.{digits}f}", end)


def cell(found: Estimate, key: str) -> Cell:
    """A mean with its interval, for a table."""
    return Cell(text(found, key), found.mean)


def text(found: Estimate, key: str) -> str:
    """A mean with its interval where it has one."""
    digits = FIGURES[key].digits
    interval = "" if found.low is None else f" [{found.low:,.{digits}f}, {found.high:,.{digits}f}]"
    return f"{found.mean:,.{digits}f}{interval}".replace("-", "−")
