"""How well values are predicted. Shapes: N tuples."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mse(predicted_N: NDArray[Any], value_N: NDArray[Any]) -> float:
    """Mean squared error: (1/N) Σ_n (ŷ_n − y_n)²."""
    return float(np.mean((np.asarray(predicted_N, np.float64) - value_N) ** 2))


def auc(predicted_N: NDArray[Any], value_N: NDArray[Any]) -> float:
    """P(a positive is ranked above a negative), ties counting half: the area under the ROC curve, by mean ranks."""
    _, group_N, count = np.unique(predicted_N, return_inverse=True, return_counts=True)
    rank_N = (np.cumsum(count) - (count - 1) / 2)[group_N]
    positive_N = np.asarray(value_N) > 0
    positives, negatives = int(positive_N.sum()), int((~positive_N).sum())
    return float((rank_N[positive_N].sum() - positives * (positives + 1) / 2) / (positives * negatives))
