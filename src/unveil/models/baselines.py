"""Scorers that learn nothing, or next to nothing: what a model must beat, and controls for what a metric rewards.

Shapes: B histories, L tokens, V items.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from unveil.data.interactions import Sequences
from unveil.data.slots import pad_token
from unveil.propensity.known import splitmix


@dataclass(frozen=True, eq=False)
class Popularity:
    """Recommends what most users chose: score_i = Σ_s c_si / (n_s + 5)^balance, c_si how often s chose i.

    With balance 0 it is the training count. n_s is all that s chose: above 0 active users, who are shown and choose
    more of everything, do not outvote the others.
    """

    count_V: Tensor

    @classmethod
    def fit(cls, train: Sequences, balance: float = 0.0) -> Self:
        weight_N = (train.length_U[train.user_N] + 5.0) ** -balance
        return cls(torch.from_numpy(np.bincount(train.item_N, weight_N, train.n_items).astype(np.float32)))

    def scores(self, token_BL: Tensor) -> Tensor:
        return self.count_V.to(token_BL.device).expand(len(token_BL), -1)


@dataclass(frozen=True, eq=False)
class ItemToItem:
    """score_i = Σ_{j in the history, each once} decay^age_j · weight_ji; the last item has age 0."""

    weight_VV: Tensor  # a row for each item of the history
    decay: float = 1.0

    @classmethod
    def ease(cls, train: Sequences, penalty: float = 500.0) -> Self:
        """EASE (H. Steck, WWW 2019): P = (XᵀX + λ I)⁻¹, weight_ji = −P_ji / P_ii, weight_ii = 0. V² numbers."""
        p_VV = np.linalg.inv(_together(train) + penalty * np.eye(train.n_items, dtype=np.float32))
        weight_VV = -p_VV / np.diag(p_VV)
        np.fill_diagonal(weight_VV, 0)
        return cls(torch.from_numpy(weight_VV))

    @classmethod
    def knn(cls, train: Sequences, neighbours: int = 200, shrink: float = 10.0, decay: float = 0.9) -> Self:
        """Cosine similarity, shrunk: g_ji / (√(g_jj g_ii) + shrink) of the nearest neighbours of each j; g = XᵀX."""
        g_VV = _together(train)
        norm_V = np.sqrt(np.diag(g_VV))
        weight_VV = g_VV / np.maximum(np.outer(norm_V, norm_V) + shrink, 1e-9)
        np.fill_diagonal(weight_VV, 0)
        if neighbours < train.n_items:
            least_V = np.partition(weight_VV, -neighbours, axis=1)[:, -neighbours]
            weight_VV[weight_VV < least_V[:, None]] = 0
        return cls(torch.from_numpy(weight_VV), decay)

    def scores(self, token_BL: Tensor) -> Tensor:
        """x · weights, x_j the decay of the last time that j occurs in the history."""
        n_items = len(self.weight_VV)
        event_BL = token_BL < n_items
        age_BL = event_BL.flip(1).cumsum(1).flip(1) - 1
        x_BV = torch.zeros(len(token_BL), n_items + 1)
        decay_BL = torch.where(event_BL, self.decay**age_BL, 0.0)
        return x_BV.scatter_reduce(1, token_BL.clamp_max(n_items), decay_BL, "amax")[:, :n_items] @ self.weight_VV


def _together(train: Sequences) -> NDArray[np.float32]:
    """XᵀX: how many users chose both items."""
    cells = (np.ones(len(train), np.float32), (train.user_N, train.item_N))
    x_UV = sparse.csr_matrix(cells, shape=(train.n_users, train.n_items))
    x_UV.data[:] = 1
    together_VV: NDArray[np.float32] = (x_UV.T @ x_UV).toarray()
    return together_VV


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
