"""What came of each entry, read from the study's storage: the same for all who look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from unveil.experiment.tune.alive import WORKER
from unveil.experiment.tune.entries import WHY, by_entry, owner
from unveil.experiment.tune.library import optuna

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

State = Literal["waiting", "running", "complete", "pruned", "failed"]
_STATES: Mapping["optuna.trial.TrialState", State] = {
    optuna.trial.TrialState.WAITING: "waiting",
    optuna.trial.TrialState.RUNNING: "running",
    optuna.trial.TrialState.COMPLETE: "complete",
    optuna.trial.TrialState.PRUNED: "pruned",
    optuna.trial.TrialState.FAIL: "failed",
}
#: Note on a trial: what came of each replicate that is trained.
REPLICATES = "replicates"


@dataclass(frozen=True)
class Replicate:
    """One training of a trial: its best validation, and all of them by epoch; a fit has one, at its end."""

    value: float
    epoch: int | None
    seconds: float
    curve: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Record:
    """One entry. `attempts` counts how often it was begun."""

    entry: int
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
        """Whether it is done, for better or worse."""
        return self.state in ("complete", "pruned", "failed")

    @property
    def seconds(self) -> float:
        """Time spent on training."""
        return sum(each.seconds for each in self.replicates)


def records(trials: Sequence["FrozenTrial"], size: int, *, lower: bool = False) -> list[Record]:
    """The entries that have a trial, in order; `lower`: less is better."""
    found = {
        entry: (owner(attempts), sum(WORKER in trial.user_attrs for trial in attempts))  # others gave way at once
        for entry, attempts in by_entry(trials).items()
        if entry < size
    }
    return [_record(entry, trial, begun, lower) for entry, (trial, begun) in sorted(found.items()) if trial is not None]


def best_of(found: Sequence[Record]) -> Record | None:
    """The best mean; the first of equals."""
    complete = [each for each in found if each.score is not None]
    return max(complete, key=lambda each: each.score or 0.0, default=None)


def _record(entry: int, trial: "FrozenTrial", attempts: int, lower: bool) -> Record:
    state = _STATES[trial.state]
    replicates = [
        Replicate(each["value"], each["epoch"], each["seconds"], [(int(e), float(v)) for e, v in each["curve"]])
        for each in trial.user_attrs.get(REPLICATES, [])
    ]
    value = trial.value if state == "complete" else None
    return Record(entry, state, dict(trial.params), value, replicates, attempts, trial.user_attrs.get(WHY), lower)
