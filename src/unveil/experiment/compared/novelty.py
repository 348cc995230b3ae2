"""Novelty against accuracy: each run with its dial turned."""

from collections.abc import Mapping, Sequence

from unveil.report.page import Block, Cell, Column, Figure, Figures, Table, Text, number, percent
from unveil.report.plots import Line, Scale, lines
from unveil.report.svg import Drawing
from unveil.runs.dial import TOP, Point

_DIAL = (
    "A list that owes less to popularity is more novel, and that can be had without training: the dial takes λ times "
    "the log of an item's popularity from its score. Each line is one run with its dial turned from 0 (the lists as "
    "the model gives them) to 1."
)
_AGAINST = (
    "A run whose line lies above another's gives more accuracy at the same novelty; a run that merely stands further "
    "to the right on another's line has found what the dial gives for nothing."
)
_NDCG = f"NDCG@{TOP}, full ranking"

Dials = Mapping[str, Sequence[Point]]


def blocks(dials: Dials) -> list[Block]:
    """Accuracy against novelty and against coverage, as the dial turns."""
    novelty = _turning(dials, "surprise", (f"EFD@{TOP}: how surprising a listed item is, bits", _NDCG), Scale())
    coverage = _turning(dials, "coverage", ("items that stand in any list", _NDCG), Scale((True, False)))
    said = "; ".join(_dial_told(name, point) for name, points in dials.items() for point in points)
    caption = "From its left end each line shows the dial at 0, 0.2, … 1; the name is at 1."
    return [
        Text(f"{_DIAL} {_AGAINST}" if len(dials) > 1 else _DIAL),
        Figures(
            [
                Figure("Accuracy and novelty as the dial turns", novelty, said, caption, dial_table(dials)),
                Figure(
                    "Accuracy and coverage as the dial turns", coverage, said, "The name is where the dial is at 1."
                ),
            ]
        ),
    ]


def _turning(dials: Dials, figure: str, axes: tuple[str, str], scale: Scale) -> Drawing:
    drawn = {}
    for place, (name, points) in enumerate(dials.items()):
        told = [_dial_told(name, point) for point in points]
        drawn[name] = Line([point[figure] for point in points], [point["ndcg"] for point in points], told, place)
    return lines(drawn, axes, f"dial-{figure}", scale)


def dial_table(dials: Dials) -> Table:
    """Every position of every dial."""
    columns = [
        Column("run"),
        Column("dial", True),
        Column(f"NDCG@{TOP}", True),
        Column(f"Recall@{TOP}", True),
        Column("EFD", True, "bits an item"),
        Column("coverage", True, "of all items"),
        Column("popularity", True, "training events of a listed item"),
    ]
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
        for name, points in dials.items()
        for point in points
    ]
    return Table("The dial in figures, on the test cases", columns, rows)


def _dial_told(name: str, point: Point) -> str:
    return (
        f"{name}, dial {point['novelty']:g}: NDCG {point['ndcg']:.3f}, {point['surprise']:.2f} bits, "
        f"{point['coverage']:.0%} of the items"
    )
