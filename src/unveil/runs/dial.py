"""What the novelty dial gives and takes, measured on the test cases of a run: accuracy against coverage."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from unveil.evaluation.candidates import Candidates
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.result import Evaluation
from unveil.experiment.compared.novelty import blocks
from unveil.models.baselines import LessPopular
from unveil.report.page import Code, KeyFigure, Note, Page, Section, Text, write_page
from unveil.runs.folder import NEGATIVES, read_split
from unveil.serving.recommender import Recommender

TOP = 10
POINTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
Point = dict[str, float]
#: What is told of every point.
FIGURES = {"novelty", "recall", "recall_low", "recall_high", "ndcg", "coverage", "popularity", "surprise"}


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
