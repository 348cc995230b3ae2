"""The page of an answer: the reading, what is the question's own, and how it was made."""

from typing import Any

from unveil.experiment.outcome import BASE, BOUND
from unveil.experiment.reproduce.results import Results
from unveil.experiment.reproduce.run import Answer
from unveil.experiment.reproduce.words import caution, headline
from unveil.report.names import named
from unveil.report.page import Block, Cell, Code, Column, KeyFigure, Note, Page, Section, Table, Text, plain
from unveil.training.recipe import Recipe

_TARGETS = (
    "The last event of a history is its test case, the one before it the validation case. On true relevance the target "
    "of a case is replaced by the item of highest relevance γ at its own user and step; the standard evaluation leaves "
    "it as it is. Users may come back to an item, so what they have met competes like all else. Equal scores count "
    "against the target. All arms of a replicate share its log, split and negatives; under equal settings also the "
    "initial weights, batches and masks."
)
_KEPT = {
    "truth": "Validation, which decides which epoch is kept, is on true relevance for every arm, as in the paper.",
    "taken": "Validation, which decides which epoch is kept, is on what was taken, as on a real log.",
}
#: Arms with a key figure each.
_MOST_SHOWN = 6
_CATALOGUE = {
    "observed": "Targets and negatives are among the items that the drawn log shows, as in the paper.",
    "whole": "Targets and negatives are among all items of the world.",
}


def page(answer: Answer, command: str) -> Page:
    """The whole page."""
    first, *rest = answer.question.reading(answer)
    return Page(
        title=answer.question.title,
        lede=first,
        key_figures=_key_figures(answer),
        sections=[
            Section("What the figures say", [*(Text(paragraph) for paragraph in rest), Note(caution(answer.results))]),
            *answer.question.sections(answer),
            Section("How it was made", _made(answer, command)),
        ],
    )


def _key_figures(answer: Answer) -> list[KeyFigure]:
    results, severity = answer.results, answer.results.severities[0]
    figure = headline(results)
    label = f"{figure.name} on true relevance, severity {severity:g}"
    return [
        KeyFigure(f"{results.estimate(severity, arm, figure).mean:.3f}", f"{named(arm)}: {label}")
        for arm in shown(results, severity)
    ]


def shown(results: Results, severity: float) -> list[str]:
    """All trained arms, or of many the two ends of the gap and the best between them."""
    if len(results.trained) <= _MOST_SHOWN:
        return results.trained
    order = results.order(severity, headline(results))
    best = next(arm for arm in order if arm not in (BASE, BOUND))
    return [arm for arm in (BASE, best, BOUND) if arm in order]


def _made(answer: Answer, command: str) -> list[Block]:
    study = answer.plan.study
    return [
        Text(f"{_TARGETS} {_KEPT[study.epoch_by]}"),
        Text(
            f"{_CATALOGUE[study.catalogue]} Users choose by “{study.choice}”, and a choice is kept with probability γ. "
            f"Estimators are given {study.propensity} propensities. Worlds come from {answer.source.about}."
        ),
        _settings(answer),
        Code(command),
        Text(f"Fingerprint of the data: {answer.source.fingerprint[:16]}. Versions and times are in about.json."),
    ]


def _settings(answer: Answer) -> Table:
    study = answer.plan.study
    columns = [
        Column("estimator"),
        *(
            Column(title, True)
            for title in ("width", "blocks", "heads", "batch", "dropout", "mask ρ", "epochs", "clip of θ")
        ),
    ]
    rows = [_setting(arm, study.recipe(arm, 0)) for arm in answer.results.trained]
    return Table(f"Preset {study.preset}: {study.about}", columns, rows, sortable=False)


def _setting(arm: str, recipe: Recipe) -> list[Cell | str]:
    network = recipe.model
    sizes = (network.width, getattr(network, "blocks", 0), getattr(network, "heads", 0), recipe.task.batch_size)
    rest = (network.dropout, recipe.task.mask_probability, recipe.training.epochs)
    clip = recipe.estimator.get("clip")
    return [named(arm), *(plain(value) for value in (*sizes, *rest)), _clip(clip)]


def _clip(clip: Any) -> Cell | str:
    """A number, or a share of the events as it is written."""
    return "–" if clip is None else clip if isinstance(clip, str) else plain(float(clip))
