"""How the runs learnt: curves, what their weights leave of the sample, and the settings in which they differ."""

from collections.abc import Mapping
from typing import Any

from unveil.experiment.compared.run import Report
from unveil.propensity.weights import WeightDiagnostics
from unveil.report.page import Block, Cell, Column, Figure, Figures, Note, Table, Text, plain
from unveil.report.plots import Line, Scale, lines
from unveil.runs.card import WEIGHT_COLUMNS, weight_cells

_WEIGHTS = (
    "How many equally weighted events a weighted sample is worth is its effective sample size, (Σ w)² / Σ w². Runs "
    "without weights by a propensity are not listed."
)


def blocks(report: Report) -> list[Block]:
    """Curves, weights, and the settings in which runs differ."""
    told: list[Block] = [Figures([figure for figure in (_validation(report), _loss(report)) if figure is not None])]
    weights = {run.name: run.about["weights"] for run in report.runs}
    weighted = {name: WeightDiagnostics(**each) for name, each in weights.items() if each is not None}
    if weighted:
        warnings = [Note(f"{name}: {line}", True) for name, each in weighted.items() for line in each.warnings()]
        told += [Text(_WEIGHTS), *warnings, _weights(report, weighted)]
    if len(report.runs) > 1:
        told.append(_settings(report) if report.differing else Note("The runs differ in none of their settings."))
    return told


def _validation(report: Report) -> Figure | None:
    drawn = {}
    for place, run in enumerate(report.runs):
        shown = [(epoch.epoch, epoch.validation) for epoch in run.fitted.epochs if epoch.validation is not None]
        monitor = run.experiment.training.monitor
        value = [found[monitor] for _, found in shown]
        told = [f"{run.name}, epoch {at}: {monitor} {each:.4f}" for (at, _), each in zip(shown, value, strict=True)]
        if shown:
            drawn[run.name] = Line([at for at, _ in shown], value, told, place)
    if not drawn:
        return None
    monitors = " or ".join(dict.fromkeys(run.experiment.training.monitor for run in report.runs))
    return Figure(
        f"Validation {monitors} by epoch",
        lines(drawn, ("epoch", f"validation {monitors}"), "validation", Scale(whole=True)),
        "; ".join(f"{name}: best {max(line.y):.4f} of {len(line.y)}" for name, line in drawn.items()),
        "The weights of the best epoch are the ones judged.",
    )


def _loss(report: Report) -> Figure:
    drawn = {}
    for place, run in enumerate(report.runs):
        at = [epoch.epoch for epoch in run.fitted.epochs]
        loss = [epoch.loss for epoch in run.fitted.epochs]
        told = [f"{run.name}, epoch {e}: {value:.4f}" for e, value in zip(at, loss, strict=True)]
        drawn[run.name] = Line(at, loss, told, place)
    return Figure(
        "Training loss by epoch",
        lines(drawn, ("epoch", "mean risk of the training slots"), "loss", Scale(bottom=None, whole=True)),
        "; ".join(f"{name}: from {line.y[0]:.4f} to {line.y[-1]:.4f}" for name, line in drawn.items()),
        "Each estimator weighs the slots its own way: heights of different estimators say nothing, shapes do.",
    )


def _weights(report: Report, weighted: Mapping[str, WeightDiagnostics]) -> Table:
    propensity = {run.name: f"{run.about['propensity']}{' (proxy)' * run.about['by_proxy']}" for run in report.runs}
    columns = [Column("run"), Column("propensity"), *WEIGHT_COLUMNS]
    rows: list[list[Cell | str]] = [[name, propensity[name], *weight_cells(each)] for name, each in weighted.items()]
    return Table("What weighting leaves of the sample: the training events", columns, rows)


def _settings(report: Report) -> Table:
    columns = [Column("setting"), *(Column(name) for name in report.names)]
    rows = [[name, *map(_value, values)] for name, values in report.differing.items()]
    return Table("Settings that differ; all others are the same", columns, rows)


def _value(value: Any) -> Cell | str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return plain(value)
