"""EFD@k: how surprising the recommended items are, in bits."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.data.vocabulary import Index
from unveil.evaluation.metrics.base import METRICS, ListMetric, Values, mean_over_list


@METRICS.register
class EFD(ListMetric):
    """Expected free discovery as the paper has it (eq. of EFD@k), neither rank- nor relevance-aware:

    EFD@k = mean over cases c and items i in top_k(c) of −log2 θ̂_i,   θ̂_i = (count_i + 1) / (Σ_j count_j + V)

    The popularity is smoothed by one interaction an item, so that an item without any costs log2(Σ count + V) bits and
    not the logarithm of an arbitrary epsilon. Other packages have a rank- and relevance-aware EFD under the same name.
    """

    name: ClassVar[str] = "EFD"

    def __call__(self, top_CK: Index, count_V: NDArray[Any]) -> Values:  # noqa: D102
        bits_V = -np.log2((count_V + 1.0) / (count_V.sum() + len(count_V)))
        return mean_over_list(bits_V[top_CK], top_CK)
