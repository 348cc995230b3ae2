"""RankCorrelation: do the scores put all items in the order of their true relevance."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.evaluation.metrics.base import METRICS, TruthMetric, Values


@METRICS.register
class RankCorrelation(TruthMetric):
    """Spearman's ρ of scores and true relevance γ over all V items of the catalogue, seen ones included:

    ρ = cov(rank s, rank γ) / (sd(rank s) · sd(rank γ)),   equal values share the mean of their ranks

    1: the order of the truth; −1: its reverse; 0 also where all scores, or all γ, are equal: that is no order.
    """

    name: ClassVar[str] = "RankCorrelation"
    of_lists: ClassVar[bool] = False

    def __call__(self, gamma_CV: NDArray[Any], scores_CV: NDArray[Any], top_CK: NDArray[Any]) -> Values:  # noqa: D102
        one_CV, other_CV = _centred_ranks(scores_CV), _centred_ranks(gamma_CV)
        length_C = np.sqrt((one_CV**2).sum(axis=1) * (other_CV**2).sum(axis=1))
        product_C = (one_CV * other_CV).sum(axis=1)
        return np.asarray(np.divide(product_C, length_C, out=np.zeros(len(length_C)), where=length_C > 0))


def _centred_ranks(value_CV: NDArray[Any]) -> Values:
    """Rank from 1 less the mean rank; of equal values the mean of the ranks that they take up together."""
    from scipy.stats import rankdata

    centred_CV: Values = rankdata(value_CV, axis=1) - (value_CV.shape[1] + 1) / 2
    return centred_CV
