"""Exposure and preferences, estimated together by the likelihood of choices, and of ratings where there are any.

Shapes: N cells (user, item, block) that occur, B of them in a batch, S items of a sample.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn.functional import softplus

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import AtLeastOne, Positive
from unveil.processes import threads
from unveil.propensity.base import Source
from unveil.propensity.factored import (
    INITIAL_LOGIT,
    Blocks,
    FactorTables,
    FittedFactors,
    Index,
    InteractionCounts,
    both_kinds,
    minimise,
    ratings_of,
    shuffled_batches,
)
from unveil.propensity.factors import Factors

#: Cells of a batch, items of a sample, and the largest learning rate.
_BATCH, _SAMPLE, _LR = 512, 128, 0.03
#: P(better) is at most this: with θ near 1 its complement is under a logarithm.
_SURE = 1 - 1e-6


class ExposureLogits(Protocol):
    """Logits of exposure that are learnt, such as `FactorTables`."""

    def of_item(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """ψ_B of one item each."""

    def of_items(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """ψ_BS of the same items for all."""

    def prior_loss(self) -> Tensor:
        """Minus the logarithm of the prior."""

    def parameters(self) -> Iterable[Parameter]:
        """What is learnt."""


class Preferences:
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

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """What is learnt."""
        return iter(())


class FactorPreferences(nn.Module, Preferences):
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
        self.rating_N, self.scatter_N = (
            None if each is None else torch.from_numpy(each.astype(np.float32))
            for each in (counts.rating_N, counts.scatter_N)
        )
        centre = 0.0 if counts.rating_N is None else float(np.average(counts.rating_N, weights=counts.count_N))
        self.f = FactorTables((users, items, 1), width, centre, penalty=penalty, generator=generator)
        self.log_sd = nn.Parameter(torch.tensor(0.0), requires_grad=self.rating_N is not None)

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        """σ((f_sj − f_si) / sharpness) of every sampled item j."""
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
        """Minus the logarithm of the prior, up to a constant."""
        return self.f.prior_loss()


def choice_loss(own_B: Tensor, other_BS: Tensor, better_BS: Tensor, count_B: Tensor, scale: float = 1.0) -> Tensor:
    """−n log θ_i − scale · Σ_j log(1 − b_j + b_j (1 − θ_j)^n): i was exposed n times, and no better item with it.

    The likelihood of a rational choice among what happens to be exposed, P(i) = θ_i Π_{j better} (1 − θ_j), n times,
    where j is better with probability b_j, and then at all n times. With n = 1 it is that of one choice. `scale`
    stands for the items that are not in the sample. Exposure is given by its logits.
    """
    unseen_BS = torch.expm1(-count_B[:, None] * softplus(other_BS))
    return count_B * softplus(-own_B) - scale * torch.log1p(better_BS.clamp_max(_SURE) * unseen_BS).sum(1)


def fit_exposure(
    counts: InteractionCounts, exposure: ExposureLogits, preferences: Preferences, *, batches: int, seed: int
) -> None:
    """Learn both in place, by Adam on so many batches of cells: the work does not grow with the log."""
    rng = np.random.default_rng(seed)
    losses = (
        _loss(counts, exposure, preferences, nth_B, rng.permutation(counts.shape[1])[:_SAMPLE])
        for nth_B in shuffled_batches(len(counts), _BATCH, batches, rng)
    )
    with threads(1):  # a step takes less than a millisecond: a second thread costs more than it gains
        minimise([*exposure.parameters(), *preferences.parameters()], losses, batches=batches, lr=_LR)


def _loss(
    counts: InteractionCounts, exposure: ExposureLogits, preferences: Preferences, nth_B: Index, item_S: Index
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
    """Minimises −log θ_i − Σ_j log(1 − θ_j · σ(f_j − f_i)) over exposure θ_ib and preferences f_si together.

    In the spirit of ExpoMF, for choices: whether another item was exposed and not preferred, or not exposed, is summed
    over. Without ratings a log can tell the two apart only by what they may depend on: preferences are each user's own,
    ⟨P_s, Q_i⟩ + c_i, and constant; exposure is the same for all users, d_i + ⟨G_i, W_b⟩, and changes with the step.
    What is alike for all users and steps (c_i or d_i) is divided between them by the priors alone.

    Assumes just that. Personal exposure is mistaken for preference. Static exposure is told from preferences by the
    priors alone.
    """

    family: ClassVar[str] = "joint"
    source: ClassVar[Source] = "nothing"
    assumes: ClassVar[str] = "that exposure is the same for all users and preferences are constant"

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        counts, generator = InteractionCounts.of(train, blocks), torch.Generator().manual_seed(self.seed)
        exposure = FactorTables(
            counts.shape, self.width, INITIAL_LOGIT, personal=False, penalty=1.0, generator=generator
        )
        preferences = FactorPreferences(counts, self.width, 1.0, penalty=self.penalty, generator=generator)
        fit_exposure(counts, exposure, preferences, batches=self.batches, seed=self.seed)
        return exposure.factors()


JointStatic, JointTemporal = both_kinds(Joint)


@dataclass(kw_only=True)
class JointRated(FittedFactors):
    """Minimises −log θ_i − Σ_j log(1 − θ_j · σ((f_j − f_i) / sharpness)) + (r − f_i)² / 2σ² + log σ over θ and f.

    Ratings set the scale of f, so that both may be personal: ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk and
    f_si = m + b_s + c_i + ⟨P_s, Q_i⟩. Unlike in `censored`, an item that was not chosen is also preferred less, as far
    as exposure does not explain it: preferences are not learnt from favourites alone.

    Assumes a user who chooses the best exposed item, by constant preferences with few factors.
    """

    log: Interactions = field(kw_only=False)
    width: AtLeastOne = 16
    sharpness: Positive = 0.1

    family: ClassVar[str] = "joint-rated"
    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = "that users choose the best item they see, by the preferences that their ratings show"

    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        counts = InteractionCounts.of(train, blocks, ratings_of(self.log, train, self.name))
        generator = torch.Generator().manual_seed(self.seed)
        exposure = FactorTables(counts.shape, self.width, INITIAL_LOGIT, penalty=self.penalty, generator=generator)
        preferences = FactorPreferences(
            counts, self.width, self.sharpness, penalty=2 * self.penalty, generator=generator
        )
        fit_exposure(counts, exposure, preferences, batches=self.batches, seed=self.seed)
        return exposure.factors()


JointRatedStatic, JointRatedTemporal = both_kinds(JointRated)
