"""A study of tuning: how a space is searched, what came of each trial, and which was best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from unveil.errors import UnveilError
from unveil.runs.tune.space import Settings, Space, Valid, grid_settings, random_settings

if TYPE_CHECKING:
    from unveil.runs.tune.factorisation import Factorisation, FactorisationContext
    from unveil.runs.tune.trainings import Training, TrainingContext

    #: What is tuned: changed by settings, tried in a context, written as a config.
    Subject: TypeAlias = Training | Factorisation
    #: Where settings are tried: it holds the training and validation parts, and no test case.
    TrialContext: TypeAlias = TrainingContext | FactorisationContext

State = Literal["waiting", "running", "complete", "pruned", "failed"]
Sampler = Literal["random", "tpe", "grid"]
#: Trials if --trials is not given; the paper's number.
USUAL = 30


class Reporter(Protocol):
    """Is informed while a replicate is trained. Either call raises where the rest is not needed any more."""

    def advance(self, share: float) -> None:
        """So much of the replicate is done."""

    def validated(self, epoch: int, value: float) -> None:
        """The validation metric after an epoch."""


@dataclass(frozen=True)
class Replicate:
    """One training of a trial: its best validation, and all of them by epoch; a factorisation has one, at its end."""

    value: float
    epoch: int | None
    seconds: float
    curve: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Trial:
    """What came of one combination of settings. `attempts` counts how often it was begun."""

    index: int
    state: State
    settings: Mapping[str, Any]
    value: float | None  # the mean over the replicates; None unless complete
    replicates: Sequence[Replicate] = ()
    attempts: int = 1
    why: str | None = None  # it failed
    lower: bool = False  # less is better

    @property
    def score(self) -> float | None:
        """The value, turned so that more is better."""
        return -self.value if self.lower and self.value is not None else self.value

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in ("complete", "pruned", "failed")

    @property
    def seconds(self) -> float:
        """Time spent on training."""
        return sum(each.seconds for each in self.replicates)

    @property
    def spread(self) -> float | None:
        """Standard deviation over the replicates; None where there are fewer than two."""
        values = [each.value for each in self.replicates]
        return float(np.std(values, ddof=1)) if self.value is not None and len(values) > 1 else None

    def __str__(self) -> str:
        if self.value is None:
            return self.state if self.why is None else f"failed: {self.why}"
        return f"{self.value:.4f}" + ("" if self.spread is None else f" ±{self.spread:.4f}")


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The best mean; the first of equals."""
    complete = [each for each in trials if each.score is not None]
    return max(complete, key=lambda each: each.score or 0.0, default=None)


def short(name: str) -> str:
    """A setting by its last name: model.width → width."""
    return name.rpartition(".")[2].replace("_", " ")


def value_text(value: object) -> str:
    """A value as short as it can be written and still differ from others."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in one line."""
    return ", ".join(f"{short(name)} {value_text(value)}" for name, value in settings.items())


@dataclass(frozen=True)
class Plan:
    """The space, how it is searched, and how often each combination is trained."""

    space: Space
    trials: int | None = None  # None: 30, or the whole grid
    replicates: int = 3
    sampler: Sampler = "random"
    prune: bool = False  # stop trials early whose first replicate falls behind; the paper does not

    def __post_init__(self) -> None:
        for name in ("trials", "replicates"):
            found = getattr(self, name)
            if found is not None and found < 1:
                raise UnveilError("out of range", where=f"--{name}", found=found, expected="at least 1")

    def settings(self, seed: int, valid: Valid) -> list[Settings]:
        """The settings of every trial; those of `tpe` hold until it has seen enough to guess better."""
        if self.sampler == "grid":
            return grid_settings(self.space, self.trials, valid)
        return random_settings(self.space, self.trials or USUAL, seed, valid)

    def identity(self, subject: "Subject", context: "TrialContext") -> dict[str, Any]:
        """What decides the figures of a study; the number of trials does not: a study may grow.

        The log is known by its fingerprint, the world by its origin.
        """
        data = {"log": context.fingerprint, "world": context.world}
        how = {name: getattr(self, name) for name in ("replicates", "sampler", "prune")}
        return {**data, **subject.identity(), "space": self.space.plain(), **how}


@dataclass(frozen=True, eq=False)
class Study:
    """The trials of a plan on a subject; `fingerprint` is the log's, `storage` names no password.

    Of `size` trials there may be fewer, where the study was stopped.
    """

    name: str
    plan: Plan
    subject: "Subject"
    fingerprint: str
    storage: str
    trials: Sequence[Trial]
    size: int | None = None  # None: as many as there are

    @property
    def best(self) -> Trial:
        """The trial of the best mean over its replicates; the first of equals."""
        found = best_of(self.trials)
        if found is None:
            why = next((each.why for each in self.trials if each.why), None)
            raise UnveilError(f"all trials failed; the first: {why}", where=f"study {self.name}")
        return found

    def count(self, state: str) -> int:
        """How many trials ended so."""
        return sum(each.state == state for each in self.trials)

    @property
    def left(self) -> int:
        """Trials that are not over."""
        return 0 if self.size is None else self.size - len(self.trials)

    def ranked(self) -> list[Trial]:
        """The best first; those without a value last, in order."""
        return sorted(self.trials, key=lambda each: (each.score is None, -(each.score or 0.0), each.index))
