"""Relevance@k: how much users would truly like what is recommended."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.metrics.base import METRICS, NOBODY, TruthMetric, Values


@METRICS.register
class Relevance(TruthMetric):
    """The mean true relevance γ of a recommended list; an empty place counts 0:

    Relevance@k = (1/k) Σ_{i in top_k(c)} γ_i
    """

    name: ClassVar[str] = "Relevance"

    def __call__(self, gamma_CV: NDArray[Any], scores_CV: NDArray[Any], top_CK: NDArray[Any]) -> Values:  # noqa: D102
        gamma_CK = np.take_along_axis(gamma_CV, np.maximum(top_CK, 0), axis=1)
        mean_C: Values = np.where(top_CK == NOBODY, 0.0, gamma_CK).mean(axis=1, dtype=np.float64)
        return mean_C
