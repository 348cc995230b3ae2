"""The novelty dial: a list that owes less to popularity, without training again.

Shapes: V items.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.errors import UnveilError
from unveil.models.baselines import log_share


def popularity(sequences: Sequences) -> NDArray[np.int64]:
    """count_V: how often each item was taken."""
    return np.bincount(sequences.item_N, minlength=sequences.n_items)


def shift(count_V: NDArray[np.int64], novelty: float) -> Tensor:
    """−λ · log((count_i + 1) / (Σ_j count_j + V)): what the dial adds to each score.

    At 0 items stand by how likely they are after this history, p(i | h); at 1 by how much more likely than for just
    anybody, p(i | h) / p(i). In between, by the odds of the two.
    """
    if not 0 <= novelty <= 1:
        raise UnveilError("novelty is out of range", found=novelty, expected="between 0 and 1")
    return -novelty * log_share(torch.from_numpy(count_V))
