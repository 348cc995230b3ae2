"""Scorers that learn nothing, or next to nothing: what a model must beat, and controls for what a metric rewards.

Shapes: B histories, L tokens, V items.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import pad_token
from unveil.propensity.known import splitmix


@dataclass(frozen=True, eq=False)
class Popularity:
    """Recommends what most users chose: score_i = training count of i."""

    count_V: Tensor

    @classmethod
    def fit(cls, train: Sequences) -> Self:
        return cls(torch.from_numpy(train.count_V.astype(np.float32)))

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.count_V.to(token_BL.device).expand(len(token_BL), -1)


@dataclass(frozen=True)
class Constant:
    """All items are equal: a metric above 0 is due to the rule for ties."""

    n_items: int

    def scores(self, token_BL: Tensor) -> Tensor:
        return torch.zeros(len(token_BL), self.n_items, device=token_BL.device)


@dataclass(frozen=True)
class Random:
    """Uniform scores in [0, 1): a hash of seed, history and item, whatever the batch and the padding."""

    n_items: int
    seed: int = 0

    def scores(self, token_BL: Tensor) -> Tensor:
        word_BL = token_BL.cpu().numpy().astype(np.uint64)
        place_L = np.arange(word_BL.shape[1], 0, -1).astype(np.uint64)
        key_BL = splitmix(word_BL + splitmix(place_L + splitmix(np.array([self.seed]).astype(np.uint64))))
        history_B = (key_BL * (word_BL != pad_token(self.n_items))).sum(axis=1, dtype=np.uint64)
        bits_BV = splitmix(history_B[:, None] + splitmix(np.arange(self.n_items, dtype=np.uint64)))
        scores_BV = (bits_BV >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
        return torch.from_numpy(scores_BV).to(token_BL.device)


@dataclass(frozen=True, eq=False)
class LessPopular:
    """The control arm: score_i − λ · log((count_i + 1) / (Σ_j count_j + V)), λ = `strength`.

    A metric that rewards whatever penalises popularity rewards this too.
    """

    scorer: Callable[[Tensor], Tensor]  # the `scores` of a model, on the scale of logits
    count_V: Tensor
    strength: float

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.scorer(token_BL) - self.strength * log_share(self.count_V).to(token_BL.device)


def log_share(count_V: Tensor) -> Tensor:
    """log((count_i + 1) / (Σ_j count_j + V)): popularity, smoothed so that no item has none."""
    return ((count_V + 1) / (count_V.sum() + len(count_V))).log()
