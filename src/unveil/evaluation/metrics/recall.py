"""Recall@k: is the target among the first k."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.metrics.base import METRICS, RankMetric, Values


@METRICS.register
class Recall(RankMetric):
    """The share of the relevant items that made the list; with one target at place r it is the hit rate HR@k:

    Recall@k = 1[r ≤ k]
    """

    name: ClassVar[str] = "Recall"

    def __call__(self, rank_C: NDArray[Any], k: int) -> Values:  # noqa: D102
        return (rank_C <= k).astype(np.float64)
