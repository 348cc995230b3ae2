"""MRR@k: the reciprocal of the target's place."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.metrics.base import METRICS, RankMetric, Values


@METRICS.register
class MRR(RankMetric):
    """Mean reciprocal rank of the target at place r, nothing beyond place k:

    MRR@k = 1[r ≤ k] / r
    """

    name: ClassVar[str] = "MRR"

    def __call__(self, rank_C: NDArray[Any], k: int) -> Values:  # noqa: D102
        return np.where(rank_C <= k, 1.0 / rank_C, 0.0)
