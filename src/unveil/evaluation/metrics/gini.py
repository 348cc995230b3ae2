"""Gini@k: how unequally the places of the lists are shared out among the items."""

from typing import ClassVar

import numpy as np

from unveil.data.vocabulary import Index
from unveil.evaluation.metrics.base import METRICS, NOBODY, CatalogueMetric


@METRICS.register
class Gini(CatalogueMetric):
    """The Gini coefficient of how often each of the V items is recommended, n_(1) ≤ … ≤ n_(V):

    Gini@k = Σ_j (2j − V − 1) n_(j) / (V Σ_j n_(j))

    0 where all items are recommended equally often; 1 − 1/V where all places go to one item.
    """

    name: ClassVar[str] = "Gini"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, top_CK: Index, n_items: int) -> float:  # noqa: D102
        times_V = np.sort(np.bincount(top_CK[top_CK != NOBODY], minlength=n_items))
        place_V = np.arange(1, n_items + 1)
        return float(((2 * place_V - n_items - 1) * times_V).sum() / (n_items * max(times_V.sum(), 1)))
