"""NDCG@k: how high the target stands, discounted by the logarithm of its place."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.metrics.base import METRICS, RankMetric, Values


@METRICS.register
class NDCG(RankMetric):
    """Normalised discounted cumulative gain of one target at place r:

    NDCG@k = 1[r ≤ k] / log2(1 + r)

    With a single relevant item the ideal gain is 1, so nothing is left to divide by.
    """

    name: ClassVar[str] = "NDCG"

    def __call__(self, rank_C: NDArray[Any], k: int) -> Values:  # noqa: D102
        return np.where(rank_C <= k, 1.0 / np.log2(1.0 + rank_C), 0.0)
