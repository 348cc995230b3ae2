"""Steps down the slope of an estimator's risk: one pass over a task, batch by batch.

Shapes: B batch, L length, D width, M masked slots, V items.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import nn

from unveil.data.batches import Batch
from unveil.errors import UnveilError
from unveil.estimators.base import Estimator, Signal, cloze_risk
from unveil.models.base import Backbone
from unveil.training.adamw import AdamW
from unveil.training.config import TrainerConfig
from unveil.training.distributed.team import SOLO, Team
from unveil.training.heap import Tidying
from unveil.training.progress import Watcher
from unveil.training.schedule import learning_rate


class Task(Protocol):
    """Batches to learn from. `epoch(n)` is a pure function of n: that makes resumption exact."""

    def __len__(self) -> int:
        """Batches of an epoch."""

    def epoch(self, n: int) -> Iterator[Batch]:
        """The batches of epoch n."""

    @property
    def slots_per_batch(self) -> float:
        """The expected number of slots in a full batch."""


@dataclass
class Tally:
    """The risk of an epoch: Σ w·(−log p) and what it is divided by."""

    risk: float = 0.0
    total: float = 0.0
    slots: int = 0
    lr: float = 0.0

    def add(self, risk: float, total: float, slots: int) -> None:
        """One batch more."""
        self.risk, self.total, self.slots = self.risk + risk, self.total + total, self.slots + slots

    @property
    def loss(self) -> float:
        """The mean so far."""
        return self.risk / self.total if self.total else 0.0


@dataclass(frozen=True)
class Learner:
    """A model, what it is to minimise, AdamW, and who shares the work."""

    config: TrainerConfig
    model: Backbone
    estimator: Estimator
    task: Task
    device: torch.device
    mean_weight: float = 1.0  # of the estimator's weights over all slots
    team: Team = SOLO

    @cached_property
    def optimiser(self) -> AdamW:
        """What moves the parameters; without decay it is Adam."""
        return AdamW(list(self.model.parameters()), self.config.betas, self.config.weight_decay)

    @cached_property
    def tidying(self) -> Tidying:
        """Of the memory that batches leave behind."""
        return Tidying()

    def epoch(self, number: int, watch: Watcher) -> Tally:
        """One pass over the task."""
        tally = Tally()
        for tally in self.steps(number):
            watch.batch(tally.loss)
        if not tally.slots:
            raise UnveilError("no item was masked in a whole epoch", hint="Raise the mask probability.")
        return tally

    def steps(self, number: int) -> Iterator[Tally]:
        """The tally after each batch. A batch without slots teaches nothing and is passed over."""
        self.model.train()
        tally = Tally()
        for nth, batch in enumerate(self.task.epoch(number)):
            tally.lr = learning_rate(self.config, (number - 1) * len(self.task) + nth, len(self.task))
            if len(batch.slots):
                self.step(batch, tally, number)
            self.tidying.after_step()
            yield tally

    def step(self, batch: Batch, tally: Tally, epoch: int) -> None:
        """One step of the optimiser, the same for all of the team: risks and gradients are sums over its parts."""
        part = self.team.part(batch)
        signal = self.estimator(part.slots).to(self.device)
        divisor, total = self.normaliser(signal, len(batch.slots))
        self.optimiser.zero_grad()
        risk = self.backward(part.to(self.device), signal, divisor)
        (value,) = self.team.add_up(self.optimiser.parameters, risk)
        _refuse_infinite(value, epoch)
        if self.config.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimiser.step(tally.lr)
        tally.add(value * divisor, total, len(batch.slots))

    def backward(self, part: Batch, signal: Signal, divisor: float) -> float:
        """Form the gradients of a part's risk, and give the risk. A part without slots has neither."""
        if not len(part.slots):
            return 0.0
        loss = cloze_risk(*self.model.head(self.model(part.token_BL, part.where)), signal, normaliser=divisor)
        torch.autograd.backward(loss)
        return loss.item()

    def normaliser(self, signal: Signal, slots: int) -> tuple[float, float]:
        """What the risk of a batch with so many slots is divided by, and its part in the mean over the epoch."""
        return normaliser(self.estimator, signal, slots, self.task.slots_per_batch, self.mean_weight, self.team)


def normaliser(
    estimator: Estimator, signal: Signal, slots: int, expected: float, mean_weight: float = 1.0, team: Team = SOLO
) -> tuple[float, float]:
    """What the risk of a batch with `expected` slots is divided by, and its part in the mean over the epoch.

    The paper's 1/N, N the slots of a batch. Batches of short rows hold fewer slots, so N is the number expected of a
    full batch: every slot of an epoch then weighs the same, whichever rows it shares a batch with. It is also divided
    by the estimator's mean weight: a constant, which moves no minimum, but puts the risks of all estimators on one
    scale, where one clip of the gradient means the same to each. A self-normalised estimator divides by the mean
    weight of the batch itself.

    Of a batch that a team shares, the signal is this process's part; `slots` and the sum of weights are those of the
    whole batch.
    """
    if not estimator.self_normalised:
        return expected * mean_weight, slots * mean_weight
    (weight,) = team.sum(float(signal.weight_M.sum()))
    total = max(weight, torch.finfo(torch.float32).tiny)
    return total * expected / slots, total


def _refuse_infinite(loss: float, epoch: int) -> None:
    if not math.isfinite(loss):
        raise UnveilError(
            "training diverged: the loss is not finite",
            where=f"epoch {epoch}",
            found=loss,
            hint="Try a smaller training.lr, a smaller training.clip, warm-up, a clip on the propensities, or less "
            "extreme options of the estimator or the propensity.",
        )
