"""ARP@k: how popular the recommended items were in training."""

from typing import Any, ClassVar

from numpy.typing import NDArray

from unveil.data.vocabulary import Index
from unveil.evaluation.metrics.base import METRICS, ListMetric, Values, mean_over_list


@METRICS.register
class ARP(ListMetric):
    """Average recommendation popularity, in interactions of the training part:

    ARP@k = mean over cases c and items i in top_k(c) of count_i
    """

    name: ClassVar[str] = "ARP"
    higher_is_better: ClassVar[bool] = False

    def __call__(self, top_CK: Index, count_V: NDArray[Any]) -> Values:  # noqa: D102
        return mean_over_list(count_V.astype(float)[top_CK], top_CK)
