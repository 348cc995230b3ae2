"""How the runs learnt, what their weights are, how far their probabilities can be believed, and what the dial gives."""

from typing import Any

from unveil.experiment.compared.run import Report
from unveil.experiment.dial import TOP, Point
from unveil.experiment.lines import Line, Scale, lines
from unveil.experiment.report import (
    Block,
    Cell,
    Column,
    Figure,
    Figures,
    Note,
    Table,
    Text,
    count,
    number,
    percent,
    plain,
)
from unveil.experiment.result_plots import reliability
from unveil.propensity.weights import WeightDiagnostics

_DIAL = (
    "A list that owes less to popularity is more novel, and that can be had without training: the dial takes λ times "
    "the log of an item's popularity from its score. Each line is one run with its dial turned from 0 (the lists of "
    "the tables above) to 1. A run whose line lies above another's gives more accuracy at the same novelty; a run that "
    "merely stands further to the right on another's line has found what the dial gives for nothing."
)
_CALIBRATION = (
    "Scores are trained to be log-probabilities of the next item. Where a run promises 10%, it should be right in one "
    "case out of ten. The loss that weights events aims at what users would like, not at what they will take, so that "
    "its promises about the log need not be kept; a ranking needs no probabilities either. Those who add up, threshold "
    "or mix scores do."
)
_WEIGHTS = (
    "How many equally weighted events a weighted sample is worth is its effective sample size, (Σ w)² / Σ w². Runs "
    "without weights by a propensity are not listed."
)


def training(report: Report) -> list[Block]:
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


def dial(report: Report) -> list[Block]:
    """Novelty against accuracy."""
    drawn = {
        name: Line(
            [point["surprise"] for point in report.measured[name].dial],
            [point["ndcg"] for point in report.measured[name].dial],
            [_dial_told(name, point) for point in report.measured[name].dial],
            place,
        )
        for place, name in enumerate(report.names)
    }
    rows: list[list[Cell | str]] = [
        [
            name,
            number(point["novelty"], 1),
            number(point["ndcg"], 3),
            number(point["recall"], 3),
            number(point["surprise"], 2),
            percent(point["coverage"]),
            number(point["popularity"], 1),
        ]
        for name in report.names
        for point in report.measured[name].dial
    ]
    columns = [
        Column("run"),
        Column("dial", True),
        Column(f"NDCG@{TOP}", True),
        Column(f"Recall@{TOP}", True),
        Column("EFD", True, "bits an item"),
        Column("coverage", True, "of all items"),
        Column("popularity", True, "training events of a listed item"),
    ]
    figure = Figure(
        "Accuracy and novelty as the dial turns",
        lines(drawn, (f"EFD@{TOP}: how surprising a listed item is, bits", f"NDCG@{TOP}, full ranking"), "dial"),
        "; ".join(line for each in drawn.values() for line in each.told),
        "From left to right the dial stands at 0, 0.2, … 1; the name is at 1.",
    )
    return [Text(_DIAL), Figures([figure]), Table("The dial in figures, on the test cases", columns, rows)]


def _dial_told(name: str, point: Point) -> str:
    return (
        f"{name}, dial {point['novelty']:g}: NDCG {point['ndcg']:.3f}, {point['surprise']:.2f} bits, "
        f"{point['coverage']:.0%} of the items"
    )


def calibration(report: Report) -> list[Block]:
    """Reliability of the first place and of all items, with the errors."""
    found = {name: report.measured[name].calibration for name in report.names}
    first = {
        name: Line(
            each.first.predicted,
            each.first.observed,
            [
                f"{name}: {p:.1%} promised, {o:.1%} of {n:.0f} cases right"
                for p, o, n in zip(each.first.predicted, each.first.observed, each.first.size, strict=True)
            ],
            place,
        )
        for place, (name, each) in enumerate(found.items())
    }
    drawn = [
        Figure(
            "The first place: promised and kept",
            lines(first, ("promised", "right"), "calibration-first", Scale((True, True), diagonal=True)),
            "; ".join(line for each in first.values() for line in each.told),
            "Ten bins of equally many cases, by the probability of the item in the first place.",
        ),
        Figure(
            "Every item: promised and kept",
            reliability(
                {name: (each.items.predicted, each.items.observed) for name, each in found.items()},
                ("promised probability, logarithmic", "share that was taken"),
                "taken",
                "calibration-items",
            ),
            "; ".join(f"{name}: misplaced {each.items.error:.1%}" for name, each in found.items()),
            "All items at all cases, in bins that promise equally much. Below the dashed line less came than promised.",
        ),
    ]
    columns = [
        Column("run"),
        Column("promised", True, "first place, mean"),
        Column("right", True, "first place, mean"),
        Column("ECE", True, "first place"),
        Column("misplaced", True, "of all promised, all items"),
        Column("log-loss", True, "nats a case"),
    ]
    rows: list[list[Cell | str]] = [
        [
            name,
            *(percent(_mean(each.first.size, side)) for side in (each.first.predicted, each.first.observed)),
            percent(each.first.error),
            percent(each.items.error),
            number(each.log_loss, 3),
        ]
        for name, each in found.items()
    ]
    cases = next(iter(found.values())).cases
    return [Text(_CALIBRATION), Figures(drawn), Table(f"Calibration on {cases:,} test cases", columns, rows)]


def _mean(size: tuple[float, ...], value: tuple[float, ...]) -> float:
    return sum(n * each for n, each in zip(size, value, strict=True)) / sum(size)
