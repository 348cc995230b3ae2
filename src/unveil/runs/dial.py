"""Novelty against accuracy: each run with its dial turned."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.protocols import Candidates
from unveil.evaluation.result import Evaluation
from unveil.models.baselines import LessPopular
from unveil.report.page import (
    Block,
    Cell,
    Code,
    Column,
    Figure,
    Figures,
    KeyFigure,
    Note,
    Page,
    Section,
    Table,
    Text,
    number,
    percent,
    write_page,
)
from unveil.report.plots import Line, Scale, lines
from unveil.report.svg import Drawing
from unveil.runs.folder import NEGATIVES, read_split
from unveil.serving.recommender import Recommender

TOP = 10
POINTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
Point = dict[str, float]
#: What is told of every point.
FIGURES = {"novelty", "recall", "recall_low", "recall_high", "ndcg", "coverage", "popularity", "surprise"}


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


def measured(run: Path, points: Sequence[float] = POINTS) -> list[Point]:
    """Recall and NDCG of the held-out items; coverage, popularity and surprise of the lists; at each position.

    Popularity is counted in the training part: the test events are not to know of themselves.
    """
    recommender = Recommender.load(run)
    split = read_split(run, recommender.sequences)
    candidates = replace(Candidates.load(run / NEGATIVES, split.test, split.whole), negatives={})
    count_V = np.bincount(split.train.item_N, minlength=split.train.n_items)
    evaluator = Evaluator(split.test, split.whole, candidates, count_V, recommender.length)
    top = min(TOP, len(recommender.items))
    count = torch.from_numpy(count_V)
    return [
        _point(at, evaluator.evaluate(LessPopular(recommender.model.scores, count, at), (top,), top=top, resamples=200))
        for at in points
    ]


def _point(novelty: float, evaluation: Evaluation) -> Point:
    rows = {row["metric"]: row for row in evaluation.summary.iter_rows(named=True)}
    recall = rows["Recall"]
    return {
        "novelty": novelty,
        "recall": recall["mean"],
        "recall_low": recall["low"],
        "recall_high": recall["high"],
        "ndcg": rows["NDCG"]["mean"],
        "coverage": rows["Coverage"]["mean"],
        "popularity": rows["ARP"]["mean"],
        "surprise": rows["EFD"]["mean"],  # bits
    }


NAME = "dial.html"
_MADE = (
    "On the test events, full ranking. Popularity is counted in the training part. EFD is how surprising a listed item "
    "is: −log2 of its share of the training events, each item counted once more than it occurs."
)


def write_dial_page(name: str, points: Sequence[Point], path: Path, command: Sequence[str]) -> Path:
    """The page and its plots; where the page is."""
    write_page(dial_page(name, points, shlex.join(command)), path)
    return path


def dial_page(name: str, points: Sequence[Point], command: str) -> Page:
    """What each position of the dial was measured to give, and what it costs."""
    first, last = points[0], points[-1]
    return Page(
        f"{name}: the novelty dial",
        f"Lists of {TOP} that owe less to popularity, without training again; measured on events that were held out.",
        [
            Section("Novelty against accuracy", [Note(_reading(first, last)), *blocks({name: points})]),
            Section("How it was made", [Text(_MADE), Code(command)]),
        ],
        [
            KeyFigure(f"{first['recall']:.3f} → {last['recall']:.3f}", f"Recall@{TOP}, from dial 0 to 1"),
            KeyFigure(f"{first['coverage']:.0%} → {last['coverage']:.0%}", "of the items stand in any list"),
            KeyFigure(f"{first['surprise']:.1f} → {last['surprise']:.1f}", "bits of surprise an item"),
        ],
    )


def _reading(first: Point, last: Point) -> str:
    lost = 1 - last["recall"] / first["recall"] if first["recall"] else 0.0
    change = f"costs {lost:.0%} of Recall@{TOP}" if lost > 0 else f"costs no Recall@{TOP}"
    return (
        f"Turned all the way, the dial {change} ({first['recall']:.3f}, 95% interval {first['recall_low']:.3f} to "
        f"{first['recall_high']:.3f}, against {last['recall']:.3f}, {last['recall_low']:.3f} to "
        f"{last['recall_high']:.3f}), and a listed item was taken {last['popularity']:.0f} times in training instead "
        f"of {first['popularity']:.0f}."
    )
