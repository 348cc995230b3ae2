"""How the runs learnt: curves, what their weights leave of the sample, and the settings in which they differ."""

from typing import Any

from unveil.experiment.compared.run import Report
from unveil.experiment.lines import Line, Scale, lines
from unveil.experiment.report import Block, Cell, Column, Figure, Figures, Note, Table, Text, count, percent, plain
from unveil.propensity.weights import WeightDiagnostics

_WEIGHTS = (
    "How many equally weighted events a weighted sample is worth is its effective sample size, (Σ w)² / Σ w². Runs "
    "without weights by a propensity are not listed."
)


def blocks(report: Report) -> list[Block]:
    """Curves, weights, and the settings in which runs differ."""
    told: list[Block] = [Figures([figure for figure in (_validation(report), _loss(report)) if figure is not None])]
    weighted = {run.name: run.about["weights"] for run in report.runs if run.about["weights"] is not None}
    if weighted:
        told += [Text(_WEIGHTS), *_warnings(weighted), _weights(report, weighted)]
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


def _warnings(weighted: dict[str, Any]) -> list[Note]:
    return [
        Note(f"{name}: {line}", warning=True)
        for name, weights in weighted.items()
        for line in WeightDiagnostics(**weights).warnings()
    ]


def _weights(report: Report, weighted: dict[str, Any]) -> Table:
    propensity = {run.name: f"{run.about['propensity']}{' (proxy)' * run.about['by_proxy']}" for run in report.runs}
    columns = [
        Column("run"),
        Column("propensity"),
        Column("training events", True),
        Column("worth", True, "(Σw)² / Σw²"),
        Column("of events", True),
        Column("largest share", True, "max w / Σw"),
        Column("spread", True, "max w / min w"),
        Column("clipped", True, "of events"),
    ]
    rows: list[list[Cell | str]] = [
        [
            name,
            propensity[name],
            count(each["slots"]),
            count(each["effective_sample_size"]),
            percent(each["effective_sample_size"] / each["slots"]),
            percent(each["largest_share"], 2),
            count(each["spread"]),
            percent(each["clipped"]),
        ]
        for name, each in weighted.items()
    ]
    return Table("What weighting leaves of the sample", columns, rows)


def _settings(report: Report) -> Table:
    columns = [Column("setting"), *(Column(name) for name in report.names)]
    rows = [[name, *map(_value, values)] for name, values in report.differing.items()]
    return Table("Settings that differ; all others are the same", columns, rows)


def _value(value: Any) -> Cell | str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return plain(value)
