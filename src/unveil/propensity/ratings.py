"""Exposure from ratings: an item that is preferred to the one chosen, and was not chosen, was not exposed.

Shapes: N cells (user, item, block) that occur, B of them in a batch, S items of a sample, C blocks, U users, V items.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr
from torch import Tensor, nn

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import AtLeastOne, NotNegative, Positive
from unveil.propensity.base import Source
from unveil.propensity.factored import (
    INITIAL_LOGIT,
    Blocks,
    FactorTables,
    FittedFactors,
    InteractionCounts,
    Values,
    both_kinds,
    ratings_of,
    shrunk_means,
)
from unveil.propensity.factors import Factors
from unveil.propensity.joint import FactorPreferences, Preferences, fit_exposure

#: Rounds of alternation; and ratings equal to the mean that every user and every item has beside its own.
_ROUNDS, _PRIOR_RATINGS = 10, 5.0
#: Share of the variance that is noise, if no pair has two ratings; and the least share of the variance of either part.
_NOISE, _LEAST = 0.5, 1e-3


@dataclass(frozen=True, eq=False)
class RatedPreferences(Preferences):
    """f_si = μ + b_s + c_i + e_si from ratings r = f_si + ε; without a rating of the pair, e_si = 0 ± its deviation.

    e_si is shrunk by the variances found: of ε from ratings of the same pair, of e from what is left between pairs.
    Preferences do not change with the step.
    """

    mean_UV: Any  # sparse: e_si
    count_UV: Any  # sparse: ratings of the pair
    user_U: Values  # μ + b_s
    item_V: Values  # c_i
    noise: float  # variance of ε
    pair: float  # variance of e

    @classmethod
    def of(cls, counts: InteractionCounts) -> "RatedPreferences":
        """By alternation over users, items and pairs."""
        assert counts.rating_N is not None
        users, items, _ = counts.shape
        count_N, rating_N = counts.count_N, counts.rating_N
        mean = float(np.average(rating_N, weights=count_N))
        user_U, item_V, pair_N = np.zeros(users), np.zeros(items), np.zeros(len(counts))
        for _ in range(_ROUNDS):
            left_N = rating_N - mean - pair_N
            user_U = shrunk_means(counts.user_N, left_N - item_V[counts.item_N], count_N, users, _PRIOR_RATINGS)
            item_V = shrunk_means(counts.item_N, left_N - user_U[counts.user_N], count_N, items, _PRIOR_RATINGS)
            left_N = rating_N - mean - user_U[counts.user_N] - item_V[counts.item_N]
            noise, pair = _variances(counts, left_N)
            pair_N = left_N * count_N / (count_N + noise / pair)
        at = (counts.user_N, counts.item_N)
        mean_UV, count_UV = (sparse.csr_matrix((each_N, at), shape=(users, items)) for each_N in (pair_N, count_N))
        return cls(mean_UV, count_UV, mean + user_U, item_V, noise, pair)

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        """P(f_sj > f_si) of every sampled item j, given the ratings: Φ(difference / its standard deviation)."""
        user, own, other = (index.numpy().copy() for index in (user_B, item_B, item_S))  # scipy wants its own
        f_BS = self.item_V[other] + self.mean_UV[user][:, other].toarray()
        var_BS = self._variance(self.count_UV[user][:, other].toarray())
        mean_B, count_B = (np.asarray(table[user, own], np.float64).ravel() for table in (self.mean_UV, self.count_UV))
        f_B, var_B = self.item_V[own] + mean_B, self._variance(count_B)
        z_BS = (f_BS - f_B[:, None]) / np.sqrt(var_BS + var_B[:, None])
        return torch.from_numpy(ndtr(z_BS).astype(np.float32))

    def _variance(self, count: NDArray[Any]) -> Values:
        """Of e_si given n ratings of the pair."""
        return np.asarray(self.noise / (count + self.noise / self.pair))


def _variances(counts: InteractionCounts, left_N: Values) -> tuple[float, float]:
    """Of ε and of e: within pairs, and what is left of that between pairs."""
    assert counts.scatter_N is not None
    spread = float(np.average(left_N**2, weights=counts.count_N)) + 1e-12
    within = float((counts.count_N - 1).sum())
    if not within:
        return _NOISE * spread, (1 - _NOISE) * spread
    noise = max(float(counts.scatter_N.sum()) / within, _LEAST * spread)
    between = float((left_N**2 - noise / counts.count_N).mean())
    return noise, max(between, _LEAST * spread)


class PopularityLine(nn.Module):
    """ψ_ib = centre + slope · log popularity of item i in block b: two numbers are learnt.

    A slope below 0 says that popularity is no exposure at all; the exponent is 0 then.
    """

    def __init__(self, log_popularity_CV: Values, centre: float) -> None:
        super().__init__()
        self.x_CV = torch.from_numpy(log_popularity_CV.astype(np.float32))
        self.centre, self.slope = nn.Parameter(torch.tensor(centre)), nn.Parameter(torch.tensor(0.0))

    def of_item(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """ψ_B of one item each."""
        return self.centre + self.slope * self.x_CV[block_B, item_B]

    def of_items(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """ψ_BS of the same items for all."""
        return self.centre + self.slope * self.x_CV[block_B][:, item_S]

    def prior_loss(self) -> Tensor:
        """Of the slope: without evidence it is 0."""
        return self.slope.square() / 2

    @property
    def exponent(self) -> float:
        """The slope that was found, or 0."""
        return max(0.0, float(self.slope.detach()))

    def factors(self, users: int) -> Factors:
        """The same numbers as factors: a column for each block."""
        blocks, items = self.x_CV.shape
        slope_VC = self.x_CV.numpy().T * self.exponent
        centre_V = np.full(items, float(self.centre.detach()))
        return Factors.of(np.ones((users, blocks)), slope_VC, np.eye(blocks)).biased(item_V=centre_V)


def log_popularity(counts: InteractionCounts) -> Values:
    """log of each item's share (half an interaction added) of all interactions of the block, less the mean of all."""
    count_CV = np.full(counts.shape[:0:-1], 0.5)
    np.add.at(count_CV, (counts.block_N, counts.item_N), counts.count_N)
    log_CV = np.log(count_CV / count_CV.sum(1, keepdims=True))
    return np.asarray(log_CV - log_CV.mean())


@dataclass(kw_only=True)
class RatedPopularity(FittedFactors):
    """θ̂_it = σ(centre + exponent · log popularity_it): two numbers, learnt with preferences as in `joint-rated`.

    So ratings choose the exponent: a popular item that is preferred to the one chosen was not exposed there, and is
    evidence against popularity. Where ratings speak against it altogether the exponent is 0: nothing is corrected.

    Assumes a user who chooses the best exposed item, and log exposure linear in log popularity.
    """

    log: Interactions = field(kw_only=False)
    penalty: NotNegative = 16.0
    sharpness: Positive = 0.1
    batches: AtLeastOne = 600

    family: ClassVar[str] = "rated"
    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = (
        "that users choose the best item they see, and that exposure is popularity to a power that ratings show"
    )
    exponent: float = field(init=False, repr=False)

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        counts = InteractionCounts.of(train, blocks, ratings_of(self.log, train, self.name))
        generator = torch.Generator().manual_seed(self.seed)
        line = PopularityLine(log_popularity(counts), INITIAL_LOGIT)
        preferences = FactorPreferences(counts, self.width, self.sharpness, penalty=self.penalty, generator=generator)
        fit_exposure(counts, line, preferences, batches=self.batches, seed=self.seed)
        self.exponent = line.exponent
        return line.factors(train.n_users)


RatedStatic, RatedTemporal = both_kinds(RatedPopularity)


@dataclass(kw_only=True)
class Censored(FittedFactors):
    """ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk by the likelihood of what was chosen and what was not.

    First preferences, from ratings alone (`RatedPreferences`); then exposure, a logistic model in which the chosen item
    is a positive and every other item a negative as far as it is preferred (`joint.choice_loss`): survival data, in
    which an item worse than the chosen one is censored.

    Assumes a user who chooses the best exposed item, and that ratings of chosen items are as those of all others would
    be. The second fails where only favourites are chosen: users who chose an item rate it higher than others would, so
    preferences of the others are overestimated, and their exposure underestimated.
    """

    log: Interactions = field(kw_only=False)

    family: ClassVar[str] = "censored"
    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = (
        "that users choose the best item they see, and that ratings of chosen items hold for all others too"
    )

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        rating_E = ratings_of(self.log, train, self.name)
        counts = InteractionCounts.of(train, blocks, rating_E)
        preferences = RatedPreferences.of(InteractionCounts.of(train, Blocks.of(train, 1), rating_E))
        generator = torch.Generator().manual_seed(self.seed)
        exposure = FactorTables(counts.shape, self.width, INITIAL_LOGIT, penalty=self.penalty, generator=generator)
        fit_exposure(counts, exposure, preferences, batches=self.batches, seed=self.seed)
        return exposure.factors()


CensoredStatic, CensoredTemporal = both_kinds(Censored)
