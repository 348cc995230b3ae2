"""What popularity alone would score: the figure that a model must beat. Shapes: C cases, V items, M figures."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.indexing import Index
from unveil.data.interactions import Sequences
from unveil.data.splits import Split
from unveil.evaluation.evaluator import Evaluator
from unveil.evaluation.metrics import NDCG, Recall
from unveil.evaluation.protocols import Candidates, usual_negatives
from unveil.evaluation.statistics import bootstrap
from unveil.models.baselines import Popularity, PopularityConfig

K = 10
_CELLS = 100_000_000  # cases × items that are looked at, drawn at random where there are more; at least 200 cases
LAST = 0.1  # the last period is this share of the training events
BASELINES = ("popularity", "last-period popularity")


@dataclass(frozen=True)
class Score:
    """One figure: a mean over cases, with a 95% interval by bootstrap over them."""

    split: str
    baseline: str
    protocol: str
    metric: str
    mean: float
    low: float
    high: float
    cases: int


def baselines(splits: dict[str, Split], rng: np.random.Generator) -> tuple[Score, ...]:
    """Both baselines on the test cases of every split, under full ranking and against drawn negatives."""
    return tuple(score for name, split in splits.items() if len(split.test) for score in _scores(name, split, rng))


def popularity(split: Split) -> dict[str, NDArray[np.float64]]:
    """score_V of each baseline. Items equally popular of late stand in the order of their whole popularity."""
    count_V = split.train.count_V.astype(float)
    late_V = np.bincount(last_period(split.train), minlength=split.train.n_items)
    return dict(zip(BASELINES, (count_V, late_V + count_V / (count_V.sum() + 1)), strict=True))


def last_period(train: Sequences) -> Index:
    """Items of the last tenth of the training events by the clock; without one, of the last tenth of each history."""
    time_N = train.time_N
    if time_N is not None and len(time_N):
        cut = np.partition(time_N, k := int((1 - LAST) * len(time_N)))[k]
        return np.asarray(train.item_N[time_N >= cut])
    return train.cut(train.length_U - np.ceil(LAST * train.length_U).astype(np.int64), train.length_U).item_N


def _scores(name: str, split: Split, rng: np.random.Generator) -> list[Score]:
    count_V, cases, most = split.train.count_V, split.test, max(200, _CELLS // split.whole.n_items)
    if len(cases) > most:
        cases = cases.some(np.sort(rng.choice(len(cases), most, replace=False)))
    uniform, popular = map(usual_negatives(cases, split.whole, count_V).__getitem__, ("uniform", "popular"))
    seed = int(rng.integers(2**31))
    drawn = Candidates.draw(cases, split.whole, count_V, uniform=uniform, popular=popular, seed=seed)
    evaluator = Evaluator(cases, split.whole, drawn, count_V, length=2)
    figures: dict[tuple[str, str, str], NDArray[np.float64]] = {}
    for baseline, score_V in popularity(split).items():
        # Scores as places, equal for equal ones: single precision holds them exactly.
        place_V = torch.from_numpy(np.unique(score_V, return_inverse=True)[1])
        scorer = Popularity(PopularityConfig(), len(score_V))
        scorer.bias.copy_(place_V)
        for protocol in drawn.protocols:
            rank_C = evaluator.ranks(scorer, protocol)
            figures |= {(baseline, protocol, f"{metric.name}@{K}"): metric(rank_C, K) for metric in (Recall(), NDCG())}
    value_CM = np.stack(list(figures.values()), axis=1)
    low_M, high_M = bootstrap(value_CM, rng, resamples=500)
    rows = zip(figures, value_CM.mean(0).tolist(), low_M.tolist(), high_M.tolist(), strict=True)
    return [Score(name, *key, mean, low, high, len(cases)) for key, mean, low, high in rows]
