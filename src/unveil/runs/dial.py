"""Novelty against accuracy: scores less λ times the log of popularity, measured on the test cases of a run."""

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
from unveil.report.page import Cell, Code, Column, Figure, Page, Table, number, percent, write_page
from unveil.report.plots import Line, Scale, line_figure
from unveil.report.prose import Prose
from unveil.runs.run_folder import NEGATIVES, read_split
from unveil.serving.recommender import Recommender

NAME = "dial.html"
TOP = 10
POINTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
Point = dict[str, float]
#: What is told of every point.
FIGURES = {"novelty", "recall", "recall_low", "recall_high", "ndcg", "coverage", "popularity", "surprise"}
Dials = Mapping[str, Sequence[Point]]


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


def write_dial_page(name: str, points: Sequence[Point], path: Path, command: Sequence[str]) -> Path:
    """The page and its plots; where the page is."""
    write_page(dial_page(name, points, shlex.join(command)), path)
    return path


def dial_page(name: str, points: Sequence[Point], command: str) -> Page:
    """What each λ was measured to give, and what it costs."""
    first, last = points[0], points[-1]
    lost = 1 - last["recall"] / first["recall"] if first["recall"] else 0.0
    figures = {"names": [name], "several": False, "top": TOP, "first": first, "last": last, "lost": lost}
    prose = Prose(["dial.md.j2", "report.md.j2"], figures)
    return prose.page({**dial_figures({name: points}), "command": Code(command)})


def dial_figures(dials: Dials) -> dict[str, Figure]:
    """Accuracy against novelty and against coverage, as λ grows."""
    axes = {"surprise": f"EFD@{TOP}: surprise of a recommended item, bits", "coverage": "items recommended to anyone"}
    found = {}
    for figure, label in axes.items():
        drawn = {
            name: Line(
                [point[figure] for point in points],
                [point["ndcg"] for point in points],
                [_hover(name, point) for point in points],
                place,
            )
            for place, (name, points) in enumerate(dials.items())
        }
        scale, table = Scale((figure == "coverage", False)), dial_table(dials) if figure == "surprise" else None
        found[f"dial-{figure}"] = line_figure(
            drawn, (label, f"NDCG@{TOP}, full ranking"), f"dial-{figure}", scale, table
        )
    return found


def dial_table(dials: Dials) -> Table:
    """Every λ of every run."""
    columns = [
        Column("run"),
        Column("λ", True),
        Column(f"NDCG@{TOP}", True),
        Column(f"Recall@{TOP}", True),
        Column("EFD", True, "bits per item"),
        Column("coverage", True, "of all items"),
        Column("popularity", True, "training interactions of a recommended item"),
    ]
    digits = {"novelty": 1, "ndcg": 3, "recall": 3, "surprise": 2}
    rows: list[list[Cell | str]] = [
        [
            name,
            *(number(point[figure], places) for figure, places in digits.items()),
            percent(point["coverage"]),
            number(point["popularity"], 1),
        ]
        for name, points in dials.items()
        for point in points
    ]
    return Table("Novelty setting λ, on the test cases", columns, rows)


def _hover(name: str, point: Point) -> str:
    ndcg, bits, coverage = point["ndcg"], point["surprise"], point["coverage"]
    return f"{name}, λ {point['novelty']:g}: NDCG {ndcg:.3f}, {bits:.2f} bits, {coverage:.0%} of the items"


def at_novelty(points: Sequence[Point], surprise: float) -> float | None:
    """NDCG of a run at this novelty, on straight lines between the measured points; None beyond them."""
    order = sorted(points, key=lambda point: point["surprise"])
    x, y = ([point[name] for point in order] for name in ("surprise", "ndcg"))
    return float(np.interp(surprise, x, y)) if x[0] <= surprise <= x[-1] else None
