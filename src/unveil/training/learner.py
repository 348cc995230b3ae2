"""Steps down the slope of an estimator's risk: one pass over a task, batch by batch.

Shapes: B batch, L length, D width, M masked slots, V items.
"""

import ctypes
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from mmap import PAGESIZE
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from unveil.data.batches import Batch
from unveil.errors import UnveilError
from unveil.estimators.base import Estimator, Signal, cloze_risk
from unveil.models.base import Backbone
from unveil.training.process_group import SINGLE, ProcessGroup
from unveil.training.progress import Watcher
from unveil.training.recipe import TrainerConfig


def learning_rate(config: TrainerConfig, step: int, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, …: a linear rise during `warmup` epochs times the decay of `schedule`.

    linear: 1 → 0 from the end of the warm-up to the end of the run; cosine: (1 + cos π·progress)/2 over the same;
    step: × `step_factor` once `step_epoch` epochs are over.
    """
    epochs_done = step / steps_per_epoch
    rise = min(1.0, (step + 1) / (config.warmup * steps_per_epoch)) if config.warmup > 0 else 1.0
    return config.lr * rise * _decay(config, epochs_done)


def _decay(config: TrainerConfig, epochs_done: float) -> float:
    progress = max(0.0, epochs_done - config.warmup) / max(config.epochs - config.warmup, 1e-9)
    match config.schedule:
        case "linear":
            return max(0.0, 1 - progress)
        case "cosine":
            return (1 + math.cos(math.pi * min(1.0, progress))) / 2
        case "step":
            return config.step_factor if epochs_done >= config.step_epoch else 1.0
        case "constant":
            return 1.0


#: What keeps a quotient finite: torch's and the paper's usual value.
EPSILON = 1e-8


class AdamW:
    """m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  p ← (1 − ηλ)p − η · m̂ / (√v̂ + ε).

    By torch's own kernel; its class `torch.optim.AdamW` would load a compiler first (ADR 17). Matrices decay (λ);
    biases and norms never do. `state` holds m, v and the number of steps of each parameter that has had a gradient,
    under the names torch gives them. Decoupled decay: Loshchilov and Hutter, ICLR 2019.
    """

    def __init__(
        self, parameters: Iterable[Tensor], betas: tuple[float, float] = (0.9, 0.999), weight_decay: float = 0.0
    ) -> None:
        self.parameters, self.betas, self.weight_decay = list(parameters), betas, weight_decay
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """One step at the rate η, with the gradients there are."""
        for matrices, decay in ((True, self.weight_decay), (False, 0.0)):
            moved = [each for each in self.parameters if each.grad is not None and (each.ndim > 1) is matrices]
            if not moved:
                continue
            mean, square, count = map(list, zip(*map(self._state, moved), strict=True))
            torch._foreach_add_(count, 1)
            torch._fused_adamw_(
                moved,
                [each.grad for each in moved if each.grad is not None],
                mean,
                square,
                [],
                count,
                lr=lr,
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=decay,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def _state(self, parameter: Tensor) -> tuple[Tensor, ...]:
        if not self.state[parameter]:
            zeros = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            self.state[parameter] = {**zeros, "step": torch.zeros((), device=parameter.device)}
        return tuple(self.state[parameter][name] for name in ("exp_avg", "exp_avg_sq", "step"))


#: Bytes of freed memory that may come together. What is given back has to be had again, a second or two for a gigabyte.
SPARE = 2**30
_LOOK = 16  # batches


def resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGESIZE
    except OSError:
        return 0


def malloc_trim() -> bool:
    """Give freed memory back to the system, where the allocator is glibc's; whether there was any."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    return trim is not None and bool(trim(0))


@dataclass
class HeapTrim:
    """Trims the heap once `SPARE` bytes have come on top of the least that was held after a step.

    Batches of unequal lengths leave holes between pieces in use, which glibc keeps: gigabytes over hundreds of batches.
    """

    measure: Callable[[], int] = resident
    least: float = math.inf

    def __call__(self) -> None:
        """Look, and trim if need be; then what the next step has touched again is the least."""
        held = self.measure()
        self.least = min(self.least, held)
        if held > self.least + SPARE:
            malloc_trim()
            self.least = math.inf


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
    group: ProcessGroup = SINGLE
    trim_heap: HeapTrim = field(default_factory=HeapTrim)

    @cached_property
    def optimiser(self) -> AdamW:
        """What moves the parameters; without decay it is Adam."""
        return AdamW(list(self.model.parameters()), self.config.betas, self.config.weight_decay)

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
            if nth % _LOOK == 0:
                self.trim_heap()
            yield tally

    def step(self, batch: Batch, tally: Tally, epoch: int) -> None:
        """One step of the optimiser, the same for all of the group: risks and gradients are sums over its parts."""
        part = self.group.part(batch)
        signal = self.estimator(part.slots).to(self.device)
        divisor, total = self.normaliser(signal, len(batch.slots))
        self.optimiser.zero_grad()
        risk = self.backward(part.to(self.device), signal, divisor)
        (value,) = self.group.sum_gradients(self.optimiser.parameters, risk)
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
        return normaliser(self.estimator, signal, slots, self.task.slots_per_batch, self.mean_weight, self.group)


def normaliser(
    estimator: Estimator,
    signal: Signal,
    slots: int,
    expected: float,
    mean_weight: float = 1.0,
    group: ProcessGroup = SINGLE,
) -> tuple[float, float]:
    """What the risk of a batch with `expected` slots is divided by, and its part in the mean over the epoch.

    The paper's 1/N, N the slots of a batch. Batches of short rows hold fewer slots, so N is the number expected of a
    full batch: every slot of an epoch then weighs the same, whichever rows it shares a batch with. It is also divided
    by the estimator's mean weight: a constant, which moves no minimum, but puts the risks of all estimators on one
    scale, where one clip of the gradient means the same to each. A self-normalised estimator divides by the mean
    weight of the batch itself.

    Of a batch that a group shares, the signal is this process's part; `slots` and the sum of weights are those of the
    whole batch.
    """
    if not estimator.self_normalised:
        return expected * mean_weight, slots * mean_weight
    (weight,) = group.sum(float(signal.weight_M.sum()))
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
