"""Coverage@k: how much of the catalogue is ever recommended."""

from typing import ClassVar

import numpy as np

from unveil.data.vocabulary import Index
from unveil.evaluation.metrics.base import METRICS, NOBODY, CatalogueMetric


@METRICS.register
class Coverage(CatalogueMetric):
    """The share of the V items that stand in at least one list:

    Coverage@k = |∪_c top_k(c)| / V
    """

    name: ClassVar[str] = "Coverage"

    def __call__(self, top_CK: Index, n_items: int) -> float:  # noqa: D102
        return len(np.unique(top_CK[top_CK != NOBODY])) / n_items
