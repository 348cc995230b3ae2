"""Regret@k: how much true relevance the best list there is has over the recommended one."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.metrics.base import METRICS, TruthMetric, Values
from unveil.evaluation.metrics.relevance import Relevance


@METRICS.register
class Regret(TruthMetric):
    """The mean true relevance γ of the k best items less that of the recommended list, 0 for the best list there is:

    Regret@k = (1/k) (Σ_{j ≤ k} γ_(j) − Σ_{i in top_k(c)} γ_i),   γ_(1) ≥ … ≥ γ_(V)
    """

    name: ClassVar[str] = "Regret"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, gamma_CV: NDArray[Any], scores_CV: NDArray[Any], top_CK: NDArray[Any]) -> Values:  # noqa: D102
        k = min(top_CK.shape[1], gamma_CV.shape[1])
        best_CK = np.partition(gamma_CV, gamma_CV.shape[1] - k, axis=1)[:, -k:]
        ideal_C: Values = best_CK.sum(axis=1, dtype=np.float64) / top_CK.shape[1]
        return ideal_C - Relevance()(gamma_CV, scores_CV, top_CK)
