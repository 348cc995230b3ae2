"""Entries: what is to be done, apart from who has tried. Entry i is the i-th combination; trials are attempts at it.

A trial that was begun anew, because its process died or was stopped, is a further trial of the same entry. The entry
belongs to the first of its trials that is not given up. All who read the same storage see the same owner, so that no
entry is done twice.
"""

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from unveil.runs.tune.storage import optuna

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial


#: Notes on a trial: its entry; which attempt at it this is, where not the first; how many workers have died of it
#: before; why it failed for good.
ENTRY, AGAIN, DIED, WHY = "entry", "again", "died", "why"


def entry_of(trial: "FrozenTrial", trials: Iterable["FrozenTrial"]) -> int:
    """The entry that a trial was made for, or else how many before it opened an entry of their own."""
    if ENTRY in trial.user_attrs:
        return int(trial.user_attrs[ENTRY])
    return sum(each.number < trial.number and AGAIN not in each.user_attrs for each in trials)


def opened(trials: Iterable["FrozenTrial"]) -> int:
    """How many entries have a trial."""
    return sum(AGAIN not in each.user_attrs for each in trials)


def given_up(trial: "FrozenTrial") -> bool:
    """Whether the entry is free again: stopped or died, as opposed to failed for a reason that stays."""
    return trial.state == optuna.trial.TrialState.FAIL and WHY not in trial.user_attrs


def by_entry(trials: Sequence["FrozenTrial"]) -> dict[int, list["FrozenTrial"]]:
    """The attempts at each entry, oldest first."""
    found: dict[int, list[FrozenTrial]] = {}
    fresh = 0
    for trial in sorted(trials, key=lambda each: each.number):
        entry = int(trial.user_attrs.get(ENTRY, fresh))
        fresh += AGAIN not in trial.user_attrs
        found.setdefault(entry, []).append(trial)
    return found


def owner(attempts: Iterable["FrozenTrial"]) -> "FrozenTrial | None":
    """The attempt that counts; None: nobody is at it."""
    return next((trial for trial in attempts if not given_up(trial)), None)


#: Notes on a trial: who works on it, and how often it has left word.
WORKER, BEAT = "worker", "beat"


@dataclass(frozen=True)
class Pace:
    """Seconds between two words, seconds without one until a trial is given up, seconds between two looks."""

    beat: float = 10.0
    grace: float = 90.0
    look: float = 2.0


def this_worker() -> dict[str, str | int]:
    """The machine (and the space of process numbers on it), the process, and when it began."""
    return {"machine": _machine(), "process": os.getpid(), "begun": begun(os.getpid())}


class Beat:
    """Leaves word while a trial is worked on; `lost` once others have given the trial up."""

    def __init__(self, trial: "optuna.Trial", pace: Pace) -> None:
        self.trial, self.pace = trial, pace
        self.lost, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _go_on(self) -> None:
        count = 0
        while not self._over.wait(self.pace.beat):
            count += 1
            try:
                self.trial.set_user_attr(BEAT, count)
            except optuna.exceptions.UpdateFinishedTrialError:
                self.lost.set()
                return
            except Exception:  # a storage out of reach for a moment: whoever finishes the trial will hear of it
                continue


@dataclass
class Watch:
    """Remembers when each running trial was last heard of."""

    pace: Pace = field(default_factory=Pace)
    heard: dict[int, tuple[object, float]] = field(default_factory=dict)

    def is_dead(self, trial: "FrozenTrial") -> bool:
        """Whether nobody works on a running trial any more."""
        worker = trial.user_attrs.get(WORKER)
        if worker and worker["machine"] == _machine() != "":
            return bool(begun(worker["process"]) != worker["begun"])
        word, now = (worker, trial.user_attrs.get(BEAT)), time.monotonic()
        last, since = self.heard.setdefault(trial.number, (word, now))
        if word != last:
            self.heard[trial.number] = (word, now)
            return False
        return now - since > self.pace.grace


def _machine() -> str:
    """One running system and one space of process numbers in it; nothing where it cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def begun(process: int) -> str:
    """When a process began, in the system's ticks; nothing if it is gone, or dead and not yet buried."""
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


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
