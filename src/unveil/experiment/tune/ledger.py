"""Who does what: entries are taken, given back and finished here, so that each is finished once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unveil.experiment.tune.alive import WORKER, Watch, this_worker
from unveil.experiment.tune.entries import AGAIN, DIED, ENTRY, WHY, by_entry, entry_of, opened, owner
from unveil.experiment.tune.library import optuna

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

_STATE = optuna.trial.TrialState
#: Workers that an entry may cost. One that runs out of memory does so every time, and would take all workers with it.
DEATHS = 5


@dataclass(frozen=True, eq=False)
class Claim:
    """An entry that is ours to do, and the trial in which we do it."""

    entry: int
    trial: "optuna.Trial"


@dataclass(frozen=True, eq=False)
class Ledger:
    """The entries 0 to `size` − 1 of a study."""

    study: "optuna.Study"
    distributions: Mapping[str, "BaseDistribution"]
    size: int
    watch: Watch = field(default_factory=Watch)

    @property
    def lower(self) -> bool:
        """Whether less is better."""
        return bool(self.study.direction == optuna.study.StudyDirection.MINIMIZE)

    def trials(self) -> Sequence["FrozenTrial"]:
        """All attempts, as the storage has them now."""
        return self.study.get_trials(deepcopy=False)

    def finished(self) -> bool:
        """Whether every entry is done, for better or worse."""
        owners = self.owners()
        return len(owners) == self.size and all(trial.state.is_finished() for trial in owners.values())

    def owners(self) -> dict[int, "FrozenTrial"]:
        """The attempt that counts of each entry that has one."""
        found = {entry: owner(attempts) for entry, attempts in by_entry(self.trials()).items()}
        return {entry: trial for entry, trial in sorted(found.items()) if trial is not None and entry < self.size}

    def claim(self) -> Claim | None:
        """An entry that nobody has; None: there is none, at least for now."""
        self.mend()
        while self._is_any_left():
            trial = self.study.ask(dict(self.distributions))
            trials = self.trials()
            entry = entry_of(next(each for each in trials if each.number == trial.number), trials)
            counts = owner(by_entry(trials).get(entry, []))
            if entry < self.size and counts is not None and counts.number == trial.number:
                trial.set_user_attr(ENTRY, entry)
                trial.set_user_attr(WORKER, this_worker())
                return Claim(entry, trial)
            self._tell(trial.number, _STATE.FAIL)  # another was quicker
        return None

    def done(self, claim: Claim, value: float) -> bool:
        """The entry has its value; False: it was given to another in the meantime, and this value does not count."""
        return self._tell(claim.trial.number, _STATE.COMPLETE, value)

    def pruned(self, claim: Claim) -> bool:
        """The entry is not worth finishing."""
        return self._tell(claim.trial.number, _STATE.PRUNED)

    def failed(self, claim: Claim, why: str) -> bool:
        """The entry cannot be done: the same settings would fail again."""
        try:
            claim.trial.set_user_attr(WHY, why)
        except optuna.exceptions.UpdateFinishedTrialError:
            return False
        return self._tell(claim.trial.number, _STATE.FAIL)

    def give_back(self, trial: "FrozenTrial | optuna.Trial") -> None:
        """Leave the entry to whoever comes next, with the same settings."""
        if self._tell(trial.number, _STATE.FAIL):
            self.mend()

    def mend(self) -> None:
        """Give up the trials whose process is gone, and put every entry that nobody is at up for taking again."""
        gone = set()
        for trial in self.trials():
            if trial.state == _STATE.RUNNING and self.watch.is_dead(trial) and self._tell(trial.number, _STATE.FAIL):
                gone.add(trial.number)
        for entry, attempts in by_entry(self.trials()).items():
            if entry < self.size and owner(attempts) is None:
                self._again(entry, attempts, died=any(trial.number in gone for trial in attempts))

    def _again(self, entry: int, attempts: Sequence["FrozenTrial"], *, died: bool) -> None:
        """Two who do this at once make two trials; `claim` lets the first of them count.

        An attempt that nobody claimed says nothing of the settings: it may have been one too many in a smaller study.
        """
        claimed = [trial for trial in attempts if ENTRY in trial.user_attrs]
        known = max(claimed, key=lambda trial: len(trial.params), default=None)
        deaths = max((int(trial.user_attrs.get(DIED, 0)) for trial in attempts), default=0) + died
        why = {WHY: f"its worker died {deaths} times; out of memory, perhaps"} if deaths >= DEATHS else {}
        self.study.add_trial(
            optuna.create_trial(
                state=_STATE.FAIL if why else _STATE.WAITING,
                params=known.params if known else {},
                distributions=known.distributions if known else {},
                user_attrs={ENTRY: entry, AGAIN: len(attempts), DIED: deaths, **why},
                intermediate_values=attempts[-1].intermediate_values,
            )
        )

    def _is_any_left(self) -> bool:
        trials = self.trials()
        waiting = any(trial.state == _STATE.WAITING and entry_of(trial, trials) < self.size for trial in trials)
        return waiting or opened(trials) < self.size

    def _tell(self, number: int, state: "optuna.trial.TrialState", value: float | None = None) -> bool:
        try:
            self.study.tell(number, value, state)
        except (ValueError, optuna.exceptions.UpdateFinishedTrialError):  # finished, by another
            return False
        return True
