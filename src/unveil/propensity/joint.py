"""Exposure from choices, together with preferences or given them: what is preferred and not chosen was not exposed.

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
from torch.nn.functional import softplus

from unveil.data.interactions import Interactions, Sequences, every_rating
from unveil.errors import AtLeastOne, NotNegative, Positive
from unveil.propensity import factors
from unveil.propensity.base import Source, both_kinds
from unveil.propensity.factors import Blocks, Factors, FactorTables, FittedFactors, Index, InteractionCounts, Values

#: Cells of a batch, items of a sample, and the largest learning rate.
_BATCH, _SAMPLE, _LR = 512, 128, 0.03
#: Rounds of alternation; and ratings equal to the mean that every user and every item has beside its own.
_ROUNDS, _PRIOR_RATINGS = 10, 5.0
#: Share of the variance that is noise, if no pair has two ratings; and the least share of the variance of either part.
_NOISE, _LEAST = 0.5, 1e-3
_SURE = 1 - 1e-6  # P(better) is at most this: with θ near 1 its complement is under a logarithm


class Preferences(nn.Module):
    """How likely a user prefers one item to another; unless a subclass learns that, all is known."""

    fixed: ClassVar[bool] = True  # j is better than i at all times or at none, uncertain which; or drawn anew each time

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        """P(j preferred to i)_BS of every sampled item j."""
        raise NotImplementedError

    def rating_loss(self, user_B: Tensor, item_B: Tensor, nth_B: Tensor) -> Tensor:
        """Minus the log-likelihood of the ratings of these cells."""
        return torch.zeros(())

    def prior_loss(self) -> Tensor:
        """Minus the logarithm of the prior, up to a constant."""
        return torch.zeros(())


class FactorPreferences(Preferences):
    """f_si = centre + b_s + c_i + ⟨P_s, Q_i⟩ at all steps; j is preferred to i with σ((f_j − f_i) / sharpness).

    Ratings are r = f_si + ε with ε normal, its variance learnt too. Without ratings the sharpness is the scale of f.
    """

    fixed: ClassVar[bool] = False

    def __init__(
        self, counts: InteractionCounts, width: int, sharpness: float, *, penalty: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        users, items, _ = counts.shape
        self.sharpness = sharpness
        self.count_N = torch.from_numpy(counts.count_N.astype(np.float32))
        known = (counts.rating_N, counts.scatter_N)
        self.rating_N, self.scatter_N = (None if x is None else torch.from_numpy(x.astype(np.float32)) for x in known)
        centre = 0.0 if counts.rating_N is None else float(np.average(counts.rating_N, weights=counts.count_N))
        self.f = FactorTables((users, items, 1), width, centre, penalty=penalty, generator=generator)
        self.log_sd = nn.Parameter(torch.tensor(0.0), requires_grad=self.rating_N is not None)

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        block_B = torch.zeros_like(user_B)
        ahead_BS = self.f.of_items(user_B, block_B, item_S) - self.f.of_item(user_B, item_B, block_B)[:, None]
        return torch.sigmoid(ahead_BS / self.sharpness)

    def rating_loss(self, user_B: Tensor, item_B: Tensor, nth_B: Tensor) -> Tensor:
        """Σ over the ratings of these cells of (r − f)² / 2σ² + log σ."""
        if self.rating_N is None or self.scatter_N is None:
            return torch.zeros(())
        error_B = self.rating_N[nth_B] - self.f.of_item(user_B, item_B, torch.zeros_like(user_B))
        square_B = self.count_N[nth_B] * error_B.square() + self.scatter_N[nth_B]
        return (square_B / (2 * torch.exp(2 * self.log_sd)) + self.count_N[nth_B] * self.log_sd).sum()

    def prior_loss(self) -> Tensor:
        return self.f.prior_loss()


class RatedPreferences(Preferences):
    """f_si = μ + b_s + c_i + e_si from ratings r = f_si + ε; without a rating of the pair, e_si = 0 ± its deviation.

    By alternation; e_si is shrunk by the variances found: of ε within pairs, of e from what is left between them.
    """

    def __init__(self, counts: InteractionCounts) -> None:
        super().__init__()
        assert counts.rating_N is not None
        users, items, _ = counts.shape
        count_N, rating_N = counts.count_N, counts.rating_N
        mean = float(np.average(rating_N, weights=count_N))
        user_U, self.item_V, pair_N = np.zeros(users), np.zeros(items), np.zeros(len(counts))
        for _ in range(_ROUNDS):
            left_N = rating_N - mean - pair_N
            user_U = factors.shrunk_means(
                counts.user_N, left_N - self.item_V[counts.item_N], count_N, users, _PRIOR_RATINGS
            )
            self.item_V = factors.shrunk_means(
                counts.item_N, left_N - user_U[counts.user_N], count_N, items, _PRIOR_RATINGS
            )
            left_N = rating_N - mean - user_U[counts.user_N] - self.item_V[counts.item_N]
            self.noise, self.pair = _variances(counts, left_N)
            pair_N = left_N * count_N / (count_N + self.noise / self.pair)
        at, shape = (counts.user_N, counts.item_N), (users, items)
        self.mean_UV, self.count_UV = (sparse.csr_matrix((each_N, at), shape=shape) for each_N in (pair_N, count_N))

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
    return noise, max(float((left_N**2 - noise / counts.count_N).mean()), _LEAST * spread)


class PopularityLine(nn.Module):
    """ψ_ib = centre + slope · log popularity of item i in block b: two numbers are learnt.

    A slope below 0 says that popularity is no exposure at all; the exponent is 0 then.
    """

    def __init__(self, log_popularity_CV: Values, centre: float) -> None:
        super().__init__()
        self.x_CV = torch.from_numpy(log_popularity_CV.astype(np.float32))
        self.centre, self.slope = nn.Parameter(torch.tensor(centre)), nn.Parameter(torch.tensor(0.0))

    def of_item(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        return self.centre + self.slope * self.x_CV[block_B, item_B]

    def of_items(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        return self.centre + self.slope * self.x_CV[block_B][:, item_S]

    def prior_loss(self) -> Tensor:
        """Of the slope: without evidence it is 0."""
        return self.slope.square() / 2

    @property
    def exponent(self) -> float:
        return max(0.0, float(self.slope.detach()))

    def factors(self, users: int) -> Factors:
        blocks, items = self.x_CV.shape
        slopes = Factors.of(np.ones((users, blocks)), self.x_CV.numpy().T * self.exponent, np.eye(blocks))
        return slopes.biased(item_V=np.full(items, float(self.centre.detach())))


Exposure = FactorTables | PopularityLine


def choice_loss(own_B: Tensor, other_BS: Tensor, better_BS: Tensor, count_B: Tensor, scale: float = 1.0) -> Tensor:
    """−n log θ_i − scale · Σ_j log(1 − b_j + b_j (1 − θ_j)^n): i was exposed n times, and no better item with it.

    The likelihood of n rational choices, P(i) = θ_i Π_{j better} (1 − θ_j), where j is better with probability b_j at
    all n times. `scale` stands for the items that are not in the sample. Exposure is given by its logits.
    """
    unseen_BS = torch.expm1(-count_B[:, None] * softplus(other_BS))
    return count_B * softplus(-own_B) - scale * torch.log1p(better_BS.clamp_max(_SURE) * unseen_BS).sum(1)


def fit_exposure(
    counts: InteractionCounts, exposure: Exposure, preferences: Preferences, *, batches: int, seed: int
) -> None:
    """Learn both in place, by Adam on so many batches of cells: the work does not grow with the log."""
    rng = np.random.default_rng(seed)
    losses = (
        _loss(counts, exposure, preferences, nth_B, rng.permutation(counts.shape[1])[:_SAMPLE])
        for nth_B in factors.shuffled_batches(len(counts), _BATCH, batches, rng)
    )
    factors.minimise([*exposure.parameters(), *preferences.parameters()], losses, batches=batches, lr=_LR)


def _loss(
    counts: InteractionCounts, exposure: Exposure, preferences: Preferences, nth_B: Index, item_S: Index
) -> Tensor:
    """Choices, ratings and priors, of a batch scaled to all cells; divided by the events, so that `lr` fits any log."""
    user_B, item_B, block_B = (torch.from_numpy(side[nth_B]) for side in (counts.user_N, counts.item_N, counts.block_N))
    count_B, other_S = torch.from_numpy(counts.count_N[nth_B].astype(np.float32)), torch.from_numpy(item_S)
    choice_B = choice_loss(
        exposure.of_item(user_B, item_B, block_B),
        exposure.of_items(user_B, block_B, other_S),
        preferences.better(user_B, item_B, other_S) * (item_B[:, None] != other_S),
        count_B if preferences.fixed else torch.ones_like(count_B),
        counts.shape[1] / len(item_S),
    )
    choices = (choice_B if preferences.fixed else count_B * choice_B).sum()
    batch = choices + preferences.rating_loss(user_B, item_B, torch.from_numpy(nth_B))
    total = batch * (len(counts) / len(nth_B)) + exposure.prior_loss() + preferences.prior_loss()
    return total / float(counts.count_N.sum())


@dataclass(kw_only=True)
class Joint(FittedFactors):
    """Minimises −log θ_i − Σ_j log(1 − θ_j · σ(f_j − f_i)) over exposure θ_ib and preferences f_si (cf. ExpoMF).

    Assumes that preferences are each user's own, ⟨P_s, Q_i⟩ + c_i, and constant, and that exposure is the same for all
    users, d_i + ⟨G_i, W_b⟩, and changes with the step: without ratings nothing else tells the two apart. Personal
    exposure is mistaken for preference; c_i and d_i, and so static exposure, are separated by the priors alone.
    """

    source: ClassVar[Source] = "nothing"
    assumes: ClassVar[str] = "that exposure is the same for all users and preferences are constant"

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        counts, rng = InteractionCounts.of(train, blocks), torch.Generator().manual_seed(self.seed)
        exposure = FactorTables(
            counts.shape, self.width, factors.INITIAL_LOGIT, personal=False, penalty=1.0, generator=rng
        )
        preferences = FactorPreferences(counts, self.width, 1.0, penalty=self.penalty, generator=rng)
        fit_exposure(counts, exposure, preferences, batches=self.batches, seed=self.seed)
        return exposure.factors()


JointStatic, JointTemporal = both_kinds("joint", Joint)


@dataclass(kw_only=True)
class _Rated(FittedFactors):
    log: Interactions = field(kw_only=False)

    source: ClassVar[Source] = "ratings"

    def _ratings(self, train: Sequences) -> Values:
        who, instead = f"the propensity {self.name!r}", "timing or joint-temporal, which need none"
        return every_rating(self.log, train, who, instead)


@dataclass(kw_only=True)
class JointRated(_Rated):
    """Minimises −log θ_i − Σ_j log(1 − θ_j · σ((f_j − f_i) / sharpness)) + (r − f_i)² / 2σ² + log σ over θ and f.

    Ratings set the scale of f, so that both may be personal: ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk,
    f_si = m + b_s + c_i + ⟨P_s, Q_i⟩. What was not chosen is preferred less as far as exposure does not explain it.
    Assumes a user who chooses the best exposed item, by constant preferences with few factors.
    """

    width: AtLeastOne = 16
    sharpness: Positive = 0.1

    assumes: ClassVar[str] = "that users choose the best item they see, by the preferences that their ratings show"

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        counts = InteractionCounts.of(train, blocks, self._ratings(train))
        rng = torch.Generator().manual_seed(self.seed)
        exposure = FactorTables(counts.shape, self.width, factors.INITIAL_LOGIT, penalty=self.penalty, generator=rng)
        preferences = FactorPreferences(counts, self.width, self.sharpness, penalty=2 * self.penalty, generator=rng)
        fit_exposure(counts, exposure, preferences, batches=self.batches, seed=self.seed)
        return exposure.factors()


JointRatedStatic, JointRatedTemporal = both_kinds("joint-rated", JointRated)


@dataclass(kw_only=True)
class RatedPopularity(_Rated):
    """θ̂_it = σ(centre + exponent · log popularity_it): two numbers, learnt with preferences as in `joint-rated`.

    Where ratings speak against popularity altogether the exponent is 0: nothing is corrected. Assumes a user who
    chooses the best exposed item, and log exposure linear in log popularity.
    """

    penalty: NotNegative = 16.0
    sharpness: Positive = 0.1
    batches: AtLeastOne = 600

    assumes: ClassVar[str] = (
        "that users choose the best item they see, and that exposure is popularity to a power that ratings show"
    )
    exponent: float = field(init=False, repr=False)

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        counts = InteractionCounts.of(train, blocks, self._ratings(train))
        count_CV = np.full(counts.shape[:0:-1], 0.5)  # half an interaction is added to each
        np.add.at(count_CV, (counts.block_N, counts.item_N), counts.count_N)
        log_CV = np.log(count_CV / count_CV.sum(1, keepdims=True))
        line = PopularityLine(log_CV - log_CV.mean(), factors.INITIAL_LOGIT)
        rng = torch.Generator().manual_seed(self.seed)
        preferences = FactorPreferences(counts, self.width, self.sharpness, penalty=self.penalty, generator=rng)
        fit_exposure(counts, line, preferences, batches=self.batches, seed=self.seed)
        self.exponent = line.exponent
        return line.factors(train.n_users)


RatedStatic, RatedTemporal = both_kinds("rated", RatedPopularity)


@dataclass(kw_only=True)
class Censored(_Rated):
    """ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk by the likelihood of what was chosen and what was not.

    First preferences, from ratings alone (`RatedPreferences`); then exposure, a logistic model in which the chosen item
    is a positive, every other a negative as far as it is preferred (`choice_loss`), and what is worse is censored.

    Assumes a user who chooses the best exposed item, and that ratings of chosen items are as those of all others would
    be. Where only favourites are chosen they are higher: exposure of what was not chosen is then underestimated.
    """

    assumes: ClassVar[str] = (
        "that users choose the best item they see, and that ratings of chosen items hold for all others too"
    )

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        rating_E = self._ratings(train)
        counts = InteractionCounts.of(train, blocks, rating_E)
        preferences = RatedPreferences(InteractionCounts.of(train, Blocks.of(train, 1), rating_E))
        rng = torch.Generator().manual_seed(self.seed)
        exposure = FactorTables(counts.shape, self.width, factors.INITIAL_LOGIT, penalty=self.penalty, generator=rng)
        fit_exposure(counts, exposure, preferences, batches=self.batches, seed=self.seed)
        return exposure.factors()


CensoredStatic, CensoredTemporal = both_kinds("censored", Censored)
