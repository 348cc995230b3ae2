"""How far the probabilities of the runs can be believed."""

from unveil.evaluation.calibration import Reliability
from unveil.experiment.compared.run import Report
from unveil.report.charts import reliability
from unveil.report.page import Block, Cell, Column, Figure, Figures, Table, Text, number, percent

_CALIBRATION = (
    "Scores are trained to be log-probabilities of the next item. Where a run promises 10%, it should be right in one "
    "case out of ten. The loss that weights events aims at what users would like, not at what they will take, so that "
    "its promises about the log need not be kept; a ranking needs no probabilities either. Those who add up, threshold "
    "or mix scores do."
)
_RELIABILITIES = (
    (
        "first",
        "The first place: promised and kept",
        "share that was right",
        "right",
        "Three to ten bins of equally many cases, fewer where hits are few. On the dashed line promises are kept.",
    ),
    (
        "items",
        "Every item: promised and kept",
        "share that was taken",
        "taken",
        "All items at all cases, in bins that promise equally much. Below the dashed line less came than promised.",
    ),
)


def blocks(report: Report) -> list[Block]:
    """Reliability of the first place and of all items, with the errors."""
    found = {name: report.measured[name].calibration for name in report.names}
    ways = {name: {"first": each.first, "items": each.items} for name, each in found.items()}
    drawn = [
        Figure(
            title,
            reliability(
                {name: (each[way].predicted, each[way].observed) for name, each in ways.items()},
                ("promised probability, logarithmic", kept),
                verb,
                f"calibration-{way}",
            ),
            "; ".join(_kept(name, each[way]) for name, each in ways.items()),
            caption,
        )
        for way, title, kept, verb, caption in _RELIABILITIES
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


def _kept(name: str, found: Reliability) -> str:
    each = zip(found.predicted, found.observed, strict=True)
    return f"{name}: {', '.join(f'{p:.2g} promised, {o:.2g} came' for p, o in each)}"


def _mean(size: tuple[float, ...], value: tuple[float, ...]) -> float:
    return sum(n * each for n, each in zip(size, value, strict=True)) / sum(size)
