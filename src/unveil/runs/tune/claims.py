"""Who works on which trial: claimed, given back and finished here, so that each is finished once.

Trial i of a study has the i-th combination of settings; Optuna's trials are attempts at it. Where a worker died or was
stopped there is a further attempt. The trial belongs to the first attempt that is not given up: all who read the same
storage see the same owner.

A worker writes a heartbeat every few seconds. Others of the same machine ask the system whether its process lives;
others elsewhere give it up when no heartbeat came for a while, by their own clock, so that clocks need not agree.
Optuna's own heartbeat and retry are for databases only, and retry what was stopped no less than what cannot be done:
see ADR 0017.
"""

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from unveil.runs.tune.space import Choice, Settings, Space, Valid
from unveil.runs.tune.storage import optuna
from unveil.runs.tune.study import Replicate, State, Trial

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    Distributions = Mapping[str, BaseDistribution]

_STATE = optuna.trial.TrialState
_STATES: Mapping["optuna.trial.TrialState", State] = {
    _STATE.WAITING: "waiting",
    _STATE.RUNNING: "running",
    _STATE.COMPLETE: "complete",
    _STATE.PRUNED: "pruned",
    _STATE.FAIL: "failed",
}
#: Notes on an attempt: the number of its trial; which attempt it is, where not the first; how many workers have died
#: of the trial before; why it failed for good; what came of its replicates; who works on it; its heartbeats so far.
INDEX, AGAIN, DIED, WHY, REPLICATES, WORKER, BEAT = "entry", "again", "died", "why", "replicates", "worker", "beat"
#: Workers that a trial may cost. One that runs out of memory does so every time, and would take all workers with it.
DEATHS = 5
#: Trials that TPE leaves to chance before it learns from them, and its guesses in a row that no model can have.
_STARTUP, _TRIES = 10, 20


@dataclass(frozen=True)
class Timing:
    """Seconds between two heartbeats, seconds without one until a trial is given up, seconds between two looks."""

    beat: float = 10.0
    grace: float = 90.0
    look: float = 2.0


class Heartbeat:
    """Writes heartbeats while an attempt is worked on; `lost` once others have given it up."""

    def __init__(self, attempt: "optuna.Trial", timing: Timing) -> None:
        self.attempt, self.timing = attempt, timing
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
        while not self._over.wait(self.timing.beat):
            count += 1
            try:
                self.attempt.set_user_attr(BEAT, count)
            except optuna.exceptions.UpdateFinishedTrialError:
                self.lost.set()
                return
            except Exception:  # a storage out of reach for a moment: whoever finishes the trial will hear of it
                continue


@dataclass
class Liveness:
    """Remembers when each running attempt was last heard of."""

    timing: Timing = field(default_factory=Timing)
    heard: dict[int, tuple[object, float]] = field(default_factory=dict)

    def is_dead(self, attempt: "FrozenTrial") -> bool:
        """Whether nobody works on a running attempt any more."""
        worker = attempt.user_attrs.get(WORKER)
        if worker and worker["machine"] == _machine() != "":
            return bool(started(worker["process"]) != worker["begun"])
        word, now = (worker, attempt.user_attrs.get(BEAT)), time.monotonic()
        last, since = self.heard.setdefault(attempt.number, (word, now))
        if word != last:
            self.heard[attempt.number] = (word, now)
            return False
        return now - since > self.timing.grace


def this_worker() -> dict[str, str | int]:
    """The machine (and the space of process numbers on it), the process, and when it began."""
    return {"machine": _machine(), "process": os.getpid(), "begun": started(os.getpid())}


def _machine() -> str:
    """One running system and one space of process numbers in it; empty where that is not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def started(process: int) -> str:
    """When a process began, in the system's ticks; empty if it is gone, or dead and not yet waited for."""
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


def index_of(attempt: "FrozenTrial", attempts: Iterable["FrozenTrial"]) -> int:
    """The trial that an attempt was made for, or else how many before it opened a trial of their own."""
    if INDEX in attempt.user_attrs:
        return int(attempt.user_attrs[INDEX])
    return sum(each.number < attempt.number and AGAIN not in each.user_attrs for each in attempts)


def by_index(attempts: Sequence["FrozenTrial"]) -> dict[int, list["FrozenTrial"]]:
    """The attempts at each trial, oldest first."""
    found: dict[int, list[FrozenTrial]] = {}
    fresh = 0
    for attempt in sorted(attempts, key=lambda each: each.number):
        found.setdefault(int(attempt.user_attrs.get(INDEX, fresh)), []).append(attempt)
        fresh += AGAIN not in attempt.user_attrs
    return dict(sorted(found.items()))


def owner(attempts: Iterable["FrozenTrial"]) -> "FrozenTrial | None":
    """The attempt that counts: neither stopped nor died, as opposed to failed for a reason that stays."""
    return next((each for each in attempts if each.state != _STATE.FAIL or WHY in each.user_attrs), None)


@dataclass(frozen=True, eq=False)
class Claim:
    """A trial that is ours to do, and the attempt in which we do it."""

    index: int
    attempt: "optuna.Trial"


@dataclass(frozen=True, eq=False)
class Claims:
    """The trials 0 to `size` − 1 of a study."""

    study: "optuna.Study"
    distributions: "Distributions"
    size: int
    liveness: Liveness = field(default_factory=Liveness)

    def attempts(self) -> Sequence["FrozenTrial"]:
        """All attempts, as the storage has them now."""
        return self.study.get_trials(deepcopy=False)

    def owners(self) -> dict[int, "FrozenTrial"]:
        """The attempt that counts of each trial that has one."""
        found = {index: owner(each) for index, each in by_index(self.attempts()).items() if index < self.size}
        return {index: attempt for index, attempt in found.items() if attempt is not None}

    def finished(self) -> bool:
        """Whether every trial is done, for better or worse."""
        owners = self.owners()
        return len(owners) == self.size and all(attempt.state.is_finished() for attempt in owners.values())

    def trials(self) -> list[Trial]:
        """What came of each trial that has an attempt, in order: the same for all who look."""
        lower = bool(self.study.direction == optuna.study.StudyDirection.MINIMIZE)
        return [
            _trial(index, counts, sum(WORKER in each.user_attrs for each in attempts), lower)
            for index, attempts in by_index(self.attempts()).items()
            if index < self.size and (counts := owner(attempts)) is not None
        ]

    def claim(self) -> Claim | None:
        """A trial that nobody has; None: there is none, at least for now."""
        self.mend()
        while self._is_any_left():
            attempt = self.study.ask(dict(self.distributions))
            attempts = self.attempts()
            index = index_of(next(each for each in attempts if each.number == attempt.number), attempts)
            counts = owner(by_index(attempts).get(index, []))
            if index < self.size and counts is not None and counts.number == attempt.number:
                attempt.set_user_attr(INDEX, index)
                attempt.set_user_attr(WORKER, this_worker())
                return Claim(index, attempt)
            self._finish(attempt.number, _STATE.FAIL)  # another was quicker
        return None

    def complete(self, claim: Claim, value: float) -> bool:
        """The trial has its value; False: it was given to another in the meantime, and this value does not count."""
        return self._finish(claim.attempt.number, _STATE.COMPLETE, value)

    def prune(self, claim: Claim) -> bool:
        """The trial is not worth finishing."""
        return self._finish(claim.attempt.number, _STATE.PRUNED)

    def fail(self, claim: Claim, why: str) -> bool:
        """The trial cannot be done: the same settings would fail again."""
        try:
            claim.attempt.set_user_attr(WHY, why)
        except optuna.exceptions.UpdateFinishedTrialError:
            return False
        return self._finish(claim.attempt.number, _STATE.FAIL)

    def give_back(self, claim: Claim) -> None:
        """Leave the trial to whoever comes next, with the same settings."""
        if self._finish(claim.attempt.number, _STATE.FAIL):
            self.mend()

    def mend(self) -> None:
        """Give up the attempts whose process is gone, and put every trial that nobody is at up for claiming again."""
        running = (each for each in self.attempts() if each.state == _STATE.RUNNING and self.liveness.is_dead(each))
        gone = {each.number for each in list(running) if self._finish(each.number, _STATE.FAIL)}
        for index, attempts in by_index(self.attempts()).items():
            if index < self.size and owner(attempts) is None:
                self._again(index, attempts, died=any(each.number in gone for each in attempts))

    def _again(self, index: int, attempts: Sequence["FrozenTrial"], *, died: bool) -> None:
        """Two who do this at once make two attempts; `claim` lets the first of them count.

        An attempt that nobody claimed says nothing of the settings: it may have been one too many in a smaller study.
        """
        claimed = [each for each in attempts if INDEX in each.user_attrs]
        known = max(claimed, key=lambda each: len(each.params), default=None)
        deaths = max((int(each.user_attrs.get(DIED, 0)) for each in attempts), default=0) + died
        why = {WHY: f"its worker died {deaths} times; out of memory, perhaps"} if deaths >= DEATHS else {}
        self.study.add_trial(
            optuna.create_trial(
                state=_STATE.FAIL if why else _STATE.WAITING,
                params=known.params if known else {},
                distributions=known.distributions if known else {},
                user_attrs={INDEX: index, AGAIN: len(attempts), DIED: deaths, **why},
                intermediate_values=attempts[-1].intermediate_values,
            )
        )

    def _is_any_left(self) -> bool:
        attempts = self.attempts()
        opened = sum(AGAIN not in each.user_attrs for each in attempts)
        waiting = (each for each in attempts if each.state == _STATE.WAITING)
        return opened < self.size or any(index_of(each, attempts) < self.size for each in waiting)

    def _finish(self, number: int, state: "optuna.trial.TrialState", value: float | None = None) -> bool:
        try:
            self.study.tell(number, value, state)
        except (ValueError, optuna.exceptions.UpdateFinishedTrialError):  # finished, by another
            return False
        return True


def _trial(index: int, attempt: "FrozenTrial", attempts: int, lower: bool) -> Trial:
    state = _STATES[attempt.state]
    replicates = [
        Replicate(each["value"], each["epoch"], each["seconds"], [(int(e), float(v)) for e, v in each["curve"]])
        for each in attempt.user_attrs.get(REPLICATES, [])
    ]
    value, why = attempt.value if state == "complete" else None, attempt.user_attrs.get(WHY)
    return Trial(index, state, dict(attempt.params), value, replicates, attempts, why, lower)


@dataclass
class SettingsSampler(optuna.samplers.BaseSampler):
    """Trial i has the i-th of the settings, whoever asks; unless TPE, where `valid` is given, has a better guess.

    Guesses of TPE depend on what was finished when they were made. Chance is seeded by trial, so that one process alone
    gives the same study again; several do not.
    """

    settings: Sequence[Settings]
    distributions: "Distributions"
    seed: int = 0
    valid: Valid | None = None

    def infer_relative_search_space(self, study: "optuna.Study", trial: "FrozenTrial") -> dict[str, "BaseDistribution"]:
        """All settings at once: which of them go together matters."""
        return {name: each for name, each in self.distributions.items() if not each.single()}

    def sample_relative(
        self, study: "optuna.Study", trial: "FrozenTrial", search_space: dict[str, "BaseDistribution"]
    ) -> dict[str, Any]:
        """The settings of the attempt's trial."""
        index = index_of(trial, study.get_trials(deepcopy=False))
        guess = self._guess(index, study, trial, search_space) if self.valid is not None else {}
        chosen = guess or self.settings[index % len(self.settings)]
        return {name: chosen[name] for name in search_space}

    def sample_independent(
        self, study: "optuna.Study", trial: "FrozenTrial", param_name: str, param_distribution: "BaseDistribution"
    ) -> Any:
        """Never called: every setting belongs to the space."""
        raise AssertionError(param_name)

    def _guess(self, index: int, study: Any, trial: "FrozenTrial", search_space: dict[str, Any]) -> Settings:
        """A guess by tree-structured Parzen estimators that a model can have; nothing while too little is known."""
        seed = int(np.random.SeedSequence([self.seed, 1, index]).generate_state(1)[0])
        tpe = optuna.samplers.TPESampler(n_startup_trials=_STARTUP, seed=seed, multivariate=True, constant_liar=True)
        guesses = (tpe.sample_relative(study, trial, search_space) for _ in range(_TRIES))
        return next((guess for guess in guesses if guess and self.valid and self.valid(guess)), {})


def distributions(space: Space) -> dict[str, "BaseDistribution"]:
    """The space in Optuna's terms."""
    found: dict[str, BaseDistribution] = {}
    for name, each in space.dimensions.items():
        if isinstance(each, Choice):
            found[name] = optuna.distributions.CategoricalDistribution(each.values)
        elif each.whole:
            found[name] = optuna.distributions.IntDistribution(int(each.low), int(each.high), log=each.log)
        else:
            found[name] = optuna.distributions.FloatDistribution(each.low, each.high, log=each.log)
    return found
