"""How well users like what they took, from their ratings: user + item + what is the pair's own.

Shapes: N takes, U users, V items, B takes of a batch, S items looked at.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr
from torch import Tensor
from torch.nn import Parameter

from unveil.propensity.choices.takes import Takes, Values

_SWEEPS = 10
#: Ratings of the mean that every user and every item has beside its own.
_SHRINK = 5.0
#: Of the variance within and between pairs, where nothing was taken twice and the two cannot be told apart.
_HALF = 0.5
#: Variances are at least this share of all.
_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class Rated:
    """f_si = μ + b_s + c_i + e_si from r = f_si + ε: e_si of what was rated, 0 ± its spread of what was not.

    The shrinkage of e_si is that of the variances found: ε by ratings of the same pair, e by what is left between
    pairs. Nothing is said of how liking moves with the step.
    """

    mean_UV: Any  # sparse: e_si
    count_UV: Any  # sparse: ratings of the pair
    user_U: Values  # μ + b_s
    item_V: Values  # c_i
    noise: float  # variance of ε
    own: float  # variance of e

    settled: ClassVar[bool] = True

    @classmethod
    def of(cls, takes: Takes) -> "Rated":
        """By turns: users, items, pairs; ten times over."""
        assert takes.rating_N is not None
        assert takes.scatter_N is not None
        users, items, _ = takes.shape
        count_N, rating_N = takes.count_N, takes.rating_N
        mean = float(np.average(rating_N, weights=count_N))
        user_U, item_V, pair_N = np.zeros(users), np.zeros(items), np.zeros(len(takes))
        noise, own = _variances(takes, rating_N - mean)
        for _ in range(_SWEEPS):
            left_N = rating_N - mean - pair_N
            user_U = _shrunken(takes.user_N, left_N - item_V[takes.item_N], count_N, users)
            item_V = _shrunken(takes.item_N, left_N - user_U[takes.user_N], count_N, items)
            left_N = rating_N - mean - user_U[takes.user_N] - item_V[takes.item_N]
            noise, own = _variances(takes, left_N)
            pair_N = left_N * count_N / (count_N + noise / own)
        at = (takes.user_N, takes.item_N)
        mean_UV, count_UV = (sparse.csr_matrix((each_N, at), shape=(users, items)) for each_N in (pair_N, count_N))
        return cls(mean_UV, count_UV, mean + user_U, item_V, noise, own)

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        """P(f_sj > f_si) of every item j looked at, given the ratings: Φ(difference / its standard deviation)."""
        user, own, other = (index.numpy().copy() for index in (user_B, item_B, item_S))  # scipy wants its own
        f_BS = self.item_V[other] + self.mean_UV[user][:, other].toarray()
        var_BS = self._variance(self.count_UV[user][:, other].toarray())
        f_B = self.item_V[own] + _at(self.mean_UV, user, own)
        var_B = self._variance(_at(self.count_UV, user, own))
        z_BS = (f_BS - f_B[:, None]) / np.sqrt(var_BS + var_B[:, None])
        return torch.from_numpy(ndtr(z_BS).astype(np.float32))

    def loss(self, user_B: Tensor, item_B: Tensor, nth_B: Tensor) -> Tensor:
        """Nothing is left to learn."""
        return torch.zeros(())

    def size(self) -> Tensor:
        """Nor to be drawn anywhere."""
        return torch.zeros(())

    def parameters(self) -> list[Parameter]:
        """None."""
        return []

    def _variance(self, count: NDArray[Any]) -> Values:
        """Of e_si given n ratings of the pair."""
        return np.asarray(self.noise / (count + self.noise / self.own))


def _shrunken(side_N: NDArray[np.int64], left_N: Values, count_N: Values, size: int) -> Values:
    total, weight = np.bincount(side_N, left_N * count_N, size), np.bincount(side_N, count_N, size)
    return np.asarray(total / (weight + _SHRINK))


def _variances(takes: Takes, left_N: Values) -> tuple[float, float]:
    """Of ε and of e: within pairs, and what is left of that between pairs."""
    assert takes.scatter_N is not None
    spread = float(np.average(left_N**2, weights=takes.count_N)) + 1e-12
    within = float((takes.count_N - 1).sum())
    if not within:
        return _HALF * spread, _HALF * spread
    noise = max(float(takes.scatter_N.sum()) / within, _LEAST * spread)
    between = float((left_N**2 - noise / takes.count_N).mean())
    return noise, max(between, _LEAST * spread)


def _at(table_UV: Any, user_B: NDArray[np.int64], item_B: NDArray[np.int64]) -> Values:
    return np.asarray(table_UV[user_B, item_B], np.float64).ravel()
