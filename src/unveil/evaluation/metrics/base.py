"""What a metric is. Four kinds, by what they look at; each metric is one small file with one registered class.

Shapes: C cases, K places of a list, V items.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.data.vocabulary import Index
from unveil.registry import Registry

Values = NDArray[np.float64]

#: Stands in a list where a user had fewer items left than the list has places; no metric counts it.
NOBODY = -1


class Metric(ABC):
    """A name, and the direction in which the metric is read."""

    name: ClassVar[str]
    higher_is_better: ClassVar[bool] = True


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


def metric(name: str) -> Metric:
    """The metric of that name; an unknown name suggests the nearest."""
    return METRICS[name]()


def rank_metrics() -> list[RankMetric]:
    """Every metric of the rank of the target, by name."""
    return [found for name in METRICS if isinstance(found := metric(name), RankMetric)]


def list_metrics() -> list[ListMetric]:
    """Every metric of a recommended list, by name."""
    return [found for name in METRICS if isinstance(found := metric(name), ListMetric)]


def catalogue_metrics() -> list[CatalogueMetric]:
    """Every metric of all lists together, by name."""
    return [found for name in METRICS if isinstance(found := metric(name), CatalogueMetric)]


def truth_metrics() -> list[TruthMetric]:
    """Every metric of true relevance, by name."""
    return [found for name in METRICS if isinstance(found := metric(name), TruthMetric)]


def mean_over_list(value_CK: Values, top_CK: Index) -> Values:
    """The average over the places of each list that are taken; an empty list counts 0."""
    taken_CK = top_CK != NOBODY
    mean_C: Values = np.where(taken_CK, value_CK, 0.0).sum(axis=1) / np.maximum(taken_CK.sum(axis=1), 1)
    return mean_C
