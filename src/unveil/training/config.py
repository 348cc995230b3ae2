"""How to train: everything that decides the numbers, and the little that does not."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from unveil.errors import UnveilError


@dataclass(frozen=True)
class TrainerConfig:
    """Length, optimiser, schedule and patience of a training run."""

    epochs: int = 100
    lr: float = 1e-3
    weight_decay: float = 0.0  # of matrices only: biases and norms never decay
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: float = 0.0  # epochs in which the learning rate rises from 0
    schedule: Literal["constant", "linear", "cosine", "step"] = "constant"
    step_epoch: int = 50  # "step": the last epoch at the full rate …
    step_factor: float = 0.1  # … and what it is multiplied with afterwards
    clip: float | None = 5.0  # largest norm of a gradient; None: any
    validate_every: int = 1  # epochs
    patience: int | None = None  # validations without improvement before stopping; None: never
    monitor: str = "NDCG@10"
    seed: int = 0
    # What follows says where and how often, not what: a run may be resumed with other values.
    device: str = "auto"
    threads: int | None = None  # None: as torch has it
    checkpoint_minutes: float = 0.0  # epochs that end sooner after the last checkpoint leave none

    def __post_init__(self) -> None:
        for name in ("epochs", "validate_every"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "at least 1")
        _check("lr", self.lr, 0 < self.lr < inf, "above 0, and a finite number")
        _check("clip", self.clip, self.clip is None or self.clip > 0, "above 0, or none")
        _check("patience", self.patience, self.patience is None or self.patience >= 1, "at least 1, or none")
        enough = self.threads is None or 1 <= self.threads <= _THREADS
        _check("threads", self.threads, enough, f"1 to {_THREADS:,}, or none")
        _check("betas", self.betas, all(0 <= beta < 1 for beta in self.betas), "two numbers between 0 and 1")
        for name in ("weight_decay", "warmup", "step_factor"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) < inf, "not negative, and a finite number")
        _check("checkpoint_minutes", self.checkpoint_minutes, self.checkpoint_minutes >= 0, "not negative")
        _check("seed", self.seed, 0 <= self.seed < _SEEDS, "not negative, and below 2⁶³")
        _check("schedule", self.schedule, self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}")


SCHEDULES = ("constant", "linear", "cosine", "step")
_SEEDS = 2**63  # what torch takes
_THREADS = 1024  # with very many more the system kills the process

#: Fields that may change between a run and its resumption.
WHEREABOUTS = frozenset({"device", "threads", "checkpoint_minutes"})


def _check(name: str, found: object, valid: bool, expected: str) -> None:
    if not valid:
        raise UnveilError("out of range", where=f"training.{name}", found=found, expected=expected)
