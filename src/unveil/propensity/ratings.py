"""Exposure from ratings: an item that is liked better than the one chosen, and was not chosen, was not seen."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr
from torch import Tensor
from torch.nn import Parameter

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.factored import START, Blocks, Factored, Line, Tables, Takes, Values, log_popularity, ratings_of
from unveil.propensity.factors import Factors
from unveil.propensity.joint import Descent, LearntLiking

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


@dataclass
class RatedPopularity(Factored):
    """θ̂_it = σ(centre + exponent · log popularity_it): two numbers, learnt together with liking, as in `joint-rated`.

    So the damping is chosen by evidence that needs no truth: a popular item that is liked better than what was taken
    was not seen there, and speaks against popularity. Where ratings speak against it altogether the exponent is 0:
    nothing is corrected.

    Assumes a user who takes the best of what is seen, and log exposure in a line with log popularity.
    """

    log: Interactions
    window: int | None = None
    blocks: int = 10
    width: int = 8
    penalty: float = 16.0
    sharpness: float = 0.1
    batches: int = 600
    seed: int = 0

    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = (
        "that users take the best of what they see, and that exposure is popularity to a power that ratings tell"
    )
    name: ClassVar[str]
    exponent: float = field(init=False, repr=False)

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        takes = Takes.of(train, blocks, ratings_of(self.log, train, self.name))
        generator = torch.Generator().manual_seed(self.seed)
        line = Line(log_popularity(takes), START)
        liking = LearntLiking(takes, self.width, self.sharpness, penalty=self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, line, liking)
        self.exponent = line.exponent
        return line.factors(train.n_users)


@register
@dataclass
class RatedStatic(RatedPopularity):
    """The same at all steps."""

    name: ClassVar[str] = "rated-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class RatedTemporal(RatedPopularity):
    """Popularity in each block of steps."""

    name: ClassVar[str] = "rated-temporal"
    kind: ClassVar[Kind] = "temporal"


@dataclass
class Censored(Factored):
    """ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk by the likelihood of what was taken and what was not.

    First liking, from ratings alone (`choices.liking`); then exposure, a logistic model in which an item taken is a
    yes and every other item a no as far as it is liked better (`choices.descent.surprise`): survival data, in which
    an item worse than the one taken is censored.

    Assumes a user who takes the best of what is seen, and ratings that are to be had for what was taken as they would
    be for all else. The second does not hold where only favourites are taken: those who took an item like it more than
    others would, so that liking is overstated for others, and their exposure understated.
    """

    log: Interactions
    window: int | None = None
    blocks: int = 10
    width: int = 8
    penalty: float = 8.0
    batches: int = 1000
    seed: int = 0

    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = (
        "that users take the best of what they see, and that ratings of what was taken say how well the rest is liked"
    )
    name: ClassVar[str]

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        rating_E = ratings_of(self.log, train, self.name)
        takes, liking = Takes.of(train, blocks, rating_E), Rated.of(Takes.of(train, Blocks.of(train, 1), rating_E))
        generator = torch.Generator().manual_seed(self.seed)
        exposure = Tables(takes.shape, self.width, START, penalty=self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, exposure, liking)
        return exposure.factors()


@register
@dataclass
class CensoredStatic(Censored):
    """The same at all steps."""

    name: ClassVar[str] = "censored-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class CensoredTemporal(Censored):
    """Exposure that differs between blocks of steps."""

    name: ClassVar[str] = "censored-temporal"
    kind: ClassVar[Kind] = "temporal"
