"""What the novelty dial gives and takes, measured on the test cases of a run: accuracy against coverage."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from unveil.evaluation.candidates import Candidates
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.result import Evaluation
from unveil.experiment.folder import NEGATIVES, read_split
from unveil.models.baselines import LessPopular
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
