"""Exposure and liking, estimated together from interactions, and from ratings where there are any."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn.functional import softplus

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.errors import refuse_unless
from unveil.processes import threads
from unveil.propensity.base import Kind, Source, register
from unveil.propensity.factored import START, Blocks, Factored, Index, Tables, Takes, dealt, descend, ratings_of
from unveil.propensity.factors import Factors


class LearntLiking(nn.Module):
    """f_si = centre + b_s + c_i + ⟨P_s, Q_i⟩, always; j is better than i with σ((f_j − f_i) / sharpness).

    Ratings are r = f_si + ε with ε normal, its variance learnt too. Without ratings the scale of f is that of the
    sharpness.
    """

    settled: ClassVar[bool] = False

    def __init__(
        self, takes: Takes, width: int, sharpness: float, *, penalty: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        users, items, _ = takes.shape
        self.sharpness = sharpness
        self.count_N = torch.from_numpy(takes.count_N.astype(np.float32))
        self.rating_N, self.scatter_N = (
            None if each is None else torch.from_numpy(each.astype(np.float32))
            for each in (takes.rating_N, takes.scatter_N)
        )
        centre = 0.0 if takes.rating_N is None else float(np.average(takes.rating_N, weights=takes.count_N))
        self.f = Tables((users, items, 1), width, centre, penalty=penalty, generator=generator)
        self.log_sd = nn.Parameter(torch.tensor(0.0), requires_grad=self.rating_N is not None)

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        """σ((f_sj − f_si) / sharpness) of every item j looked at."""
        always_B = torch.zeros_like(user_B)
        ahead_BS = self.f.among(user_B, always_B, item_S) - self.f.own(user_B, item_B, always_B)[:, None]
        return torch.sigmoid(ahead_BS / self.sharpness)

    def loss(self, user_B: Tensor, item_B: Tensor, nth_B: Tensor) -> Tensor:
        """Σ over the ratings of these takes of (r − f)² / 2σ² + log σ."""
        if self.rating_N is None or self.scatter_N is None:
            return torch.zeros(())
        off_B = self.rating_N[nth_B] - self.f.own(user_B, item_B, torch.zeros_like(user_B))
        square_B = self.count_N[nth_B] * off_B.square() + self.scatter_N[nth_B]
        return (square_B / (2 * torch.exp(2 * self.log_sd)) + self.count_N[nth_B] * self.log_sd).sum()

    def size(self) -> Tensor:
        """Minus the logarithm of the prior, up to a constant."""
        return self.f.size()


#: P(better) is cut here from above: with θ near 1 its complement is under a logarithm.
_SURE = 1 - 1e-6


class Logits(Protocol):
    """Logits of exposure that are learnt."""

    def own(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """Of one item each."""

    def among(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """Of the same items for all."""

    def size(self) -> Tensor:
        """Minus the logarithm of the prior."""

    def parameters(self) -> Iterable[Parameter]:
        """What is learnt."""


class Liking(Protocol):
    """How likely one item is liked better than another, known or learnt."""

    @property
    def settled(self) -> bool:
        """Whether j is better than i at all times or at none, and only in doubt; or anew each time."""

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        """P(j liked better than i) of every item j looked at."""

    def loss(self, user_B: Tensor, item_B: Tensor, nth_B: Tensor) -> Tensor:
        """Minus the log-likelihood of the ratings of these takes."""

    def size(self) -> Tensor:
        """Minus the logarithm of the prior."""

    def parameters(self) -> Iterable[Parameter]:
        """What is learnt."""


@dataclass(frozen=True)
class Descent:
    """The pace: Adam on so many batches of takes, each with `sample` items drawn to stand for all others.

    The work does not grow with the log: a longer one is looked at less often.
    """

    batches: int = 1000
    batch: int = 512
    sample: int = 128
    lr: float = 0.03
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batches", "batch", "sample"):
            refuse_unless(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")

    def run(self, takes: Takes, exposure: Logits, liking: Liking) -> None:
        """Learn both in place: least surprise at what was taken, ratings included, less the priors."""
        rng = np.random.default_rng(self.seed)
        learnt = [each for part in (exposure, liking) for each in part.parameters() if each.requires_grad]
        losses = (
            _loss(takes, exposure, liking, nth_B, rng.permutation(takes.shape[1])[: self.sample])
            for nth_B in dealt(len(takes), self.batch, self.batches, rng)
        )
        with threads(1):  # a step takes less than a millisecond, and to share it out costs more
            descend(learnt, losses, batches=self.batches, lr=self.lr)


def surprise(own_B: Tensor, other_BS: Tensor, better_BS: Tensor, count_B: Tensor, scale: float = 1.0) -> Tensor:
    """−n log θ_i − scale · Σ_j log(1 − b_j + b_j (1 − θ_j)^n): i was seen n times, and what is better never with it.

    The likelihood of a rational choice among what happens to be exposed, P(i) = θ_i Π_{j better} (1 − θ_j), n times
    over, where it is only known with which probability b_j each j is better: it is, or is not, at all n times alike.
    With n = 1 it is that of one choice. `scale` stands for the items that were not looked at.
    """
    unseen_BS = torch.expm1(-count_B[:, None] * softplus(other_BS))
    return count_B * softplus(-own_B) - scale * torch.log1p(better_BS.clamp_max(_SURE) * unseen_BS).sum(1)


def _loss(takes: Takes, exposure: Logits, liking: Liking, nth_B: Index, item_S: Index) -> Tensor:
    """Of a batch, as if it were all takes; for each event, so that the rate means the same for any log."""
    user_B, item_B, block_B = (torch.from_numpy(side[nth_B]) for side in (takes.user_N, takes.item_N, takes.block_N))
    count_B, other_S = torch.from_numpy(takes.count_N[nth_B].astype(np.float32)), torch.from_numpy(item_S)
    better_BS = liking.better(user_B, item_B, other_S) * (item_B[:, None] != other_S)
    once_B = torch.ones_like(count_B)
    told_B = surprise(
        exposure.own(user_B, item_B, block_B),
        exposure.among(user_B, block_B, other_S),
        better_BS,
        count_B if liking.settled else once_B,
        takes.shape[1] / len(item_S),
    )
    chosen = (told_B if liking.settled else count_B * told_B).sum()
    batch = chosen + liking.loss(user_B, item_B, torch.from_numpy(nth_B))
    everything = batch * (len(takes) / len(nth_B)) + exposure.size() + liking.size()
    return everything / float(takes.count_N.sum())


@dataclass
class Joint(Factored):
    """−log θ_i − Σ_j log(1 − θ_j · σ(f_j − f_i)) is least over exposure θ_ib and liking f_si at once.

    In the spirit of ExpoMF, for choices: whether another item was seen and disliked, or not seen, is left open, and
    summed over. Without ratings a log cannot tell the two apart but by what they may depend on: liking is each
    user's own, ⟨P_s, Q_i⟩ + c_i, and keeps still; exposure is the same for all users, d_i + ⟨G_i, W_b⟩, and moves with
    the step. What is alike for all users and at all steps (c_i or d_i) is divided between them by the priors alone.

    Assumes just that. Where exposure is personal it is taken for liking.
    """

    window: int | None = None
    blocks: int = 10
    width: int = 8
    penalty: float = 8.0
    batches: int = 1000
    seed: int = 0

    source: ClassVar[Source] = "nothing"
    assumes: ClassVar[str] = "that exposure is the same for all users and tastes keep still"
    name: ClassVar[str]

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        takes, generator = Takes.of(train, blocks), torch.Generator().manual_seed(self.seed)
        exposure = Tables(takes.shape, self.width, START, personal=False, penalty=1.0, generator=generator)
        liking = LearntLiking(takes, self.width, 1.0, penalty=self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, exposure, liking)
        return exposure.factors()


@register
@dataclass
class JointStatic(Joint):
    """The same at all steps: told from liking by the priors alone."""

    name: ClassVar[str] = "joint-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class JointTemporal(Joint):
    """Exposure that differs between blocks of steps."""

    name: ClassVar[str] = "joint-temporal"
    kind: ClassVar[Kind] = "temporal"


@dataclass
class JointRated(Factored):
    """−log θ_i − Σ_j log(1 − θ_j · σ((f_j − f_i) / sharpness)) + (r − f_i)² / 2σ² + log σ, least over θ and f at once.

    Ratings set the scale of f, so that both may be personal: ψ_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk and
    f_si = m + b_s + c_i + ⟨P_s, Q_i⟩. Unlike in `censored`, that an item was not taken lowers its liking too, as far as
    exposure does not explain it: favourites are not all that liking is learnt from.

    Assumes a user who takes the best of what is seen, by a liking that keeps still and has few factors.
    """

    log: Interactions
    window: int | None = None
    blocks: int = 10
    width: int = 16
    penalty: float = 8.0
    sharpness: float = 0.1
    batches: int = 1000
    seed: int = 0

    source: ClassVar[Source] = "ratings"
    assumes: ClassVar[str] = "that users take the best of what they see, by the liking that their ratings tell"
    name: ClassVar[str]

    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        takes = Takes.of(train, blocks, ratings_of(self.log, train, self.name))
        generator = torch.Generator().manual_seed(self.seed)
        exposure = Tables(takes.shape, self.width, START, penalty=self.penalty, generator=generator)
        liking = LearntLiking(takes, self.width, self.sharpness, penalty=2 * self.penalty, generator=generator)
        Descent(batches=self.batches, seed=self.seed).run(takes, exposure, liking)
        return exposure.factors()


@register
@dataclass
class JointRatedStatic(JointRated):
    """The same at all steps."""

    name: ClassVar[str] = "joint-rated-static"
    kind: ClassVar[Kind] = "static"


@register
@dataclass
class JointRatedTemporal(JointRated):
    """Exposure that differs between blocks of steps."""

    name: ClassVar[str] = "joint-rated-temporal"
    kind: ClassVar[Kind] = "temporal"
