"""Steps down the slope of an estimator's risk: one pass over a task, batch by batch.

Shapes: B batch, L length, D width, M masked slots, V items.
"""

import ctypes
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from mmap import PAGESIZE
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from unveil.data.batches import Batch
from unveil.errors import UnveilError
from unveil.estimators.base import Estimator, Signal, cloze_risk
from unveil.models.base import Backbone
from unveil.training.process_group import SOLO, Team
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


@dataclass(frozen=True, eq=False)
class AdamW:
    """m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  p ← (1 − ηλ)p − η · m̂ / (√v̂ + ε).

    Matrices decay (λ); biases and norms never do. `state` holds m, v and the count of steps of each parameter that has
    had a gradient, under the names torch gives them. Decoupled decay: Loshchilov and Hutter, ICLR 2019.
    """

    parameters: Sequence[Tensor]
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    state: defaultdict[Tensor, dict[str, Tensor]] = field(default_factory=lambda: defaultdict(dict))

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self, lr: float) -> None:
        """One step at the rate η, with the gradients there are."""
        moved = [parameter for parameter in self.parameters if parameter.grad is not None]
        self._step([parameter for parameter in moved if parameter.ndim > 1], lr, self.weight_decay)
        self._step([parameter for parameter in moved if parameter.ndim <= 1], lr, 0.0)

    @torch.no_grad()
    def _step(self, parameters: list[Tensor], lr: float, decay: float) -> None:
        if not parameters:
            return
        for parameter in parameters:
            self.state[parameter] = self.state[parameter] or _fresh(parameter)
        mean, square, count = (self._all(parameters, name) for name in ("exp_avg", "exp_avg_sq", "step"))
        torch._foreach_add_(count, 1)
        torch._fused_adamw_(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
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

    def _all(self, parameters: Iterable[Tensor], name: str) -> list[Tensor]:
        return [self.state[parameter][name] for parameter in parameters]


def _fresh(parameter: Tensor) -> dict[str, Tensor]:
    return {
        "exp_avg": torch.zeros_like(parameter),
        "exp_avg_sq": torch.zeros_like(parameter),
        "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
    }


#: Bytes that may come together. What is given back has to be had again, a second or two for a gigabyte: not too often.
SPARE = 2**30
#: Seconds between two looks.
EVERY = 1.0
_OWN = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    try:
        return int(_OWN.read_text().split()[1]) * PAGESIZE
    except (OSError, IndexError, ValueError):
        return 0


@dataclass
class Tidying:
    """Asked after every step, it gives memory back when more than `SPARE` has come on top of what a step needs."""

    measure: Callable[[], int] = resident
    clock: Callable[[], float] = time.monotonic
    looked: float = field(default=float("-inf"), init=False)
    needed: int | None = field(default=None, init=False)

    def after_step(self) -> bool:
        """Whether it did."""
        now = self.clock()
        if now - self.looked < EVERY:
            return False
        self.looked, held = now, self.measure()
        if self.needed is None or held < self.needed:
            self.needed = held
        if held <= self.needed + SPARE:
            return False
        give_back()
        self.needed = None  # what the next step has touched again
        return True


def give_back() -> bool:
    """Whether there was anything to give; an allocator other than glibc's is left to itself."""
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc; TypeError: Windows
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    found: Callable[[int], int] = trim
    return found


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
