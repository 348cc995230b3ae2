"""The likelihood of what was taken, given exposure and liking, and the descent on it.

Shapes: N takes, B takes of a batch, S items looked at.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import softplus

from unveil.cores import threads
from unveil.errors import refuse_unless
from unveil.propensity.choices.blocks import Index
from unveil.propensity.choices.takes import Takes
from unveil.propensity.descend import dealt, descend

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
