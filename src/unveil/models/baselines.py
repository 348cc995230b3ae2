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


@dataclass(frozen=True, eq=False)
class Popularity:
    """Recommends what most users chose: score_i = training count of i."""

    count_V: Tensor

    @classmethod
    def fit(cls, train: Sequences) -> Self:
        """Count the items of the training part."""
        return cls(torch.from_numpy(train.count_V.astype(np.float32)))

    def scores(self, token_BL: Tensor) -> Tensor:
        """The same counts for every history."""
        return self.count_V.to(token_BL.device).expand(len(token_BL), -1)


@dataclass(frozen=True)
class Constant:
    """All items are equal: what this one earns is owed to the rule for ties, and must be nothing."""

    n_items: int

    def scores(self, token_BL: Tensor) -> Tensor:
        """Zeros."""
        return torch.zeros(len(token_BL), self.n_items, device=token_BL.device)


@dataclass(frozen=True)
class Random:
    """Uniform scores in [0, 1): a hash of seed, history and item, so that a question always has the same answer.

    Neither the other rows of a batch nor the padding of a row changes it.
    """

    n_items: int
    seed: int = 0

    def scores(self, token_BL: Tensor) -> Tensor:
        """24 random bits for each history and item."""
        place_L = torch.arange(token_BL.shape[1], 0, -1, device=token_BL.device)
        key_BL = _mixed(token_BL + _mixed(place_L + _mixed(torch.tensor(self.seed))))
        history_B = (key_BL * (token_BL != pad_token(self.n_items))).sum(dim=1)
        bits_BV = _mixed(history_B[:, None] + _mixed(torch.arange(self.n_items, device=token_BL.device)))
        return ((bits_BV >> 40) & 0xFFFFFF).to(torch.float32) / 2**24


@dataclass(frozen=True, eq=False)
class LessPopular:
    """The control arm: a model's scores, less `strength` λ times the log of smoothed training popularity.

    score_i − λ · log((count_i + 1) / (Σ_j count_j + V))

    A metric that rewards whatever penalises popularity rewards this too, whatever the model has learnt.
    """

    scorer: Callable[[Tensor], Tensor]  # the `scores` of a model, on the scale of logits
    count_V: Tensor
    strength: float

    def scores(self, token_BL: Tensor) -> Tensor:
        """The adjusted scores."""
        return self.scorer(token_BL) - self.strength * log_share(self.count_V).to(token_BL.device)


def log_share(count_V: Tensor) -> Tensor:
    """log((count_i + 1) / (Σ_j count_j + V)): popularity, smoothed so that no item has none."""
    return ((count_V + 1) / (count_V.sum() + len(count_V))).log()


def _mixed(x: Tensor) -> Tensor:
    """Spread 64-bit integers evenly over all 64-bit integers (the finaliser of SplitMix64; products wrap around)."""
    x = x + _signed(0x9E3779B97F4A7C15)
    x = (x ^ ((x >> 30) & (2**34 - 1))) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ ((x >> 27) & (2**37 - 1))) * _signed(0x94D049BB133111EB)
    return x ^ ((x >> 31) & (2**33 - 1))


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word
