"""All metrics, an equation each."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from unveil.data.describe import gini
from unveil.data.indexing import Index
from unveil.registry import Registry

Values = NDArray[np.float64]

NOBODY = -1  # stands in a list where a user had fewer items left than the list has places; no metric counts it


class Metric(ABC):
    """A name, that of the class unless it has another, and the direction in which the metric is read."""

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        cls.name = cls.__dict__.get("name", cls.__name__)


class RankMetric(Metric):
    """A value for each case from the rank of its one target, counted from 1."""

    @abstractmethod
    def __call__(self, rank_C: NDArray[Any], k: int) -> Values:
        """value_C in [0, 1]: zero beyond place k."""


class ListMetric(Metric):
    """A value for each case from the list recommended there, and the training counts of the items."""

    @abstractmethod
    def __call__(self, top_CK: Index, count_V: NDArray[Any]) -> Values:
        """value_C, the average over the places of each list."""


class CatalogueMetric(Metric):
    """One value from all lists together. It is no average over users, so it has neither interval nor paired test."""

    @abstractmethod
    def __call__(self, top_CK: Index, n_items: int) -> float:
        """The value of the whole set of lists."""


class TruthMetric(Metric):
    """A value for each case from the true relevance of all items there, which only a world knows."""

    of_lists: ClassVar[bool] = True  # whether it looks at lists of K places, or at the scores of all items

    @abstractmethod
    def __call__(self, gamma_CV: NDArray[Any], scores_CV: NDArray[Any], top_CK: NDArray[Any]) -> Values:
        """value_C from relevance, from the scores of all items, and from the recommended lists."""


METRICS: Registry[Metric] = Registry("metric", package="unveil.evaluation.metrics", group="unveil.metrics")
M = TypeVar("M", bound=Metric)


def metric(name: str) -> Metric:
    """The metric of that name; an unknown name suggests the nearest."""
    return METRICS[name]()


def higher_is_better(name: str) -> bool:
    """The direction of a metric; one that is not in the registry is taken to be better when higher."""
    return metric(name).higher_is_better if name in set(METRICS) else True


def metrics_of(kind: type[M]) -> list[M]:
    """Every metric of a kind, such as `RankMetric`, by name."""
    return [found for name in METRICS if isinstance(found := metric(name), kind)]


def mean_over_list(value_CK: Values, top_CK: Index) -> Values:
    """The average over the filled places of each list; an empty list counts 0."""
    filled_CK = top_CK != NOBODY
    return np.asarray(np.where(filled_CK, value_CK, 0.0).sum(axis=1) / np.maximum(filled_CK.sum(axis=1), 1))


@METRICS.register
class Recall(RankMetric):
    """Recall@k = 1[r ≤ k]: the share of relevant items in the list; with one target at place r the hit rate HR@k."""

    def __call__(self, rank_C: NDArray[Any], k: int) -> Values:
        return (rank_C <= k).astype(np.float64)


@METRICS.register
class NDCG(RankMetric):
    """NDCG@k = 1[r ≤ k] / log2(1 + r): discounted cumulative gain of one target at place r; the ideal gain is 1."""

    def __call__(self, rank_C: NDArray[Any], k: int) -> Values:
        return np.where(rank_C <= k, 1.0 / np.log2(1.0 + rank_C), 0.0)


@METRICS.register
class MRR(RankMetric):
    """MRR@k = 1[r ≤ k] / r: mean reciprocal rank of the target at place r, nothing beyond place k."""

    def __call__(self, rank_C: NDArray[Any], k: int) -> Values:
        return np.where(rank_C <= k, 1.0 / rank_C, 0.0)


@METRICS.register
class ARP(ListMetric):
    """ARP@k = mean over cases c and items i in top_k(c) of count_i, the training interactions of i."""

    higher_is_better: ClassVar[bool] = False

    def __call__(self, top_CK: Index, count_V: NDArray[Any]) -> Values:
        return mean_over_list(count_V.astype(float)[top_CK], top_CK)


@METRICS.register
class Coverage(CatalogueMetric):
    """Coverage@k = |∪_c top_k(c)| / V: the share of the V items that stand in at least one list."""

    def __call__(self, top_CK: Index, n_items: int) -> float:
        return len(np.unique(top_CK[top_CK != NOBODY])) / n_items


@METRICS.register
class EFD(ListMetric):
    """Expected free discovery as the paper has it (eq. of EFD@k), neither rank- nor relevance-aware:

    EFD@k = mean over cases c and items i in top_k(c) of −log2 θ̂_i,   θ̂_i = (count_i + 1) / (Σ_j count_j + V)

    Smoothed by one interaction an item, so that one without any costs log2(Σ count + V) bits.
    """

    def __call__(self, top_CK: Index, count_V: NDArray[Any]) -> Values:
        bits_V = -np.log2((count_V + 1.0) / (count_V.sum() + len(count_V)))
        return mean_over_list(bits_V[top_CK], top_CK)


@METRICS.register
class Gini(CatalogueMetric):
    """The Gini coefficient of how often each of the V items is recommended, n_(1) ≤ … ≤ n_(V):

    Gini@k = Σ_j (2j − V − 1) n_(j) / (V Σ_j n_(j))

    0 where all items are recommended equally often; 1 − 1/V where all places go to one item.
    """

    higher_is_better: ClassVar[bool] = False

    def __call__(self, top_CK: Index, n_items: int) -> float:
        return gini(np.bincount(top_CK[top_CK != NOBODY], minlength=n_items))


@METRICS.register
class RankCorrelation(TruthMetric):
    """Spearman's ρ of scores and true relevance γ over all V items of the catalogue, seen ones included:

    ρ = cov(rank s, rank γ) / (sd(rank s) · sd(rank γ)),   equal values share the mean of their ranks

    1: the order of the truth; −1: its reverse; 0 also where all scores, or all γ, are equal: that is no order.
    """

    of_lists: ClassVar[bool] = False

    def __call__(self, gamma_CV: NDArray[Any], scores_CV: NDArray[Any], top_CK: NDArray[Any]) -> Values:
        one_CV, other_CV = _centred_ranks(scores_CV), _centred_ranks(gamma_CV)
        length_C = np.sqrt((one_CV**2).sum(axis=1) * (other_CV**2).sum(axis=1))
        product_C = (one_CV * other_CV).sum(axis=1)
        return np.asarray(np.divide(product_C, length_C, out=np.zeros(len(length_C)), where=length_C > 0))


def _centred_ranks(value_CV: NDArray[Any]) -> Values:
    """Rank from 1 less the mean rank; of equal values the mean of the ranks that they take up together."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(value_CV, axis=1) - (value_CV.shape[1] + 1) / 2)


@METRICS.register
class Relevance(TruthMetric):
    """Relevance@k = (1/k) Σ_{i in top_k(c)} γ_i: the mean true relevance of a list; an empty place counts 0."""

    def __call__(self, gamma_CV: NDArray[Any], scores_CV: NDArray[Any], top_CK: NDArray[Any]) -> Values:
        gamma_CK = np.take_along_axis(gamma_CV, np.maximum(top_CK, 0), axis=1)
        return np.asarray(np.where(top_CK == NOBODY, 0.0, gamma_CK).mean(axis=1, dtype=np.float64))


@METRICS.register
class Regret(TruthMetric):
    """The mean true relevance γ of the k best items less that of the recommended list, 0 for the best list there is:

    Regret@k = (1/k) (Σ_{j ≤ k} γ_(j) − Σ_{i in top_k(c)} γ_i),   γ_(1) ≥ … ≥ γ_(V)
    """

    higher_is_better: ClassVar[bool] = False

    def __call__(self, gamma_CV: NDArray[Any], scores_CV: NDArray[Any], top_CK: NDArray[Any]) -> Values:
        k = min(top_CK.shape[1], gamma_CV.shape[1])
        best_CK = np.partition(gamma_CV, gamma_CV.shape[1] - k, axis=1)[:, -k:]
        ideal_C: Values = best_CK.sum(axis=1, dtype=np.float64) / top_CK.shape[1]
        return ideal_C - Relevance()(gamma_CV, scores_CV, top_CK)
