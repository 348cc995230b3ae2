"""Trials in a storage that many workers share: a journal in the study folder, or a database.

Optuna's trials are attempts at trial i of a study, which has the i-th configuration and belongs to the first attempt
that is not given up: all who read the storage see the same owner, so each trial is finished once.

An attempt is given up when no heartbeat came for a while, by the clock of whoever looks, so that clocks need not agree;
on the same machine at once where its process is gone. Why not Optuna's own heartbeat and retry: ADR 0017.
"""

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import DuplicatedStudyError, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, RDBStorage, journal
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from unveil.data.readers.database import shown
from unveil.errors import UnveilError
from unveil.files import is_gone, machine
from unveil.runs.tune.study import Dimension, Replicate, Settings, Trial, Valid
from unveil.training.checkpoint import differences

JOURNAL = "journal.log"
IDENTITY = "identity"
_ATTEMPTS = 5  # at opening: whoever comes first makes the tables and says what the study is
#: Notes on an attempt: the number of its trial; how many workers have died of the trial before; why it failed for good;
#: what came of its replicates; who works on it; its heartbeats so far.
INDEX, DIED, WHY, REPLICATES, WORKER, BEAT = "entry", "died", "why", "replicates", "worker", "beat"
#: Workers that a trial may cost. One that runs out of memory does so every time, and would take all workers with it.
DEATHS = 5


@contextmanager
def opened(url: str | None, folder: Path) -> Iterator[BaseStorage]:
    """The database at `url`, or the journal in the folder; inside, errors say plainly that it cannot be used."""
    if url is None:
        path = (folder / JOURNAL).resolve()  # the same whatever folder the process works in
        damage: tuple[type[Exception], ...] = (ValueError, LookupError, TypeError, AssertionError, RecursionError)
        try:
            storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(path), WholeLines(path)))
            damage = (JSONDecodeError,)
            yield storage
        except damage as error:
            hint = "Restore it from a copy, or name another folder."
            raise UnveilError(f"the study's journal is damaged: {error}", where=path, hint=hint) from None
        return
    try:
        database = _database(url)
        try:
            yield database
        finally:
            database.remove_session()
            database.engine.dispose()
    except ImportError as error:
        hint = "Run: pip install 'unveil[sql]'."
        raise UnveilError(f"the database's driver is missing: {error}", where=shown(url), hint=hint) from None
    except (SQLAlchemyError, StorageInternalError) as error:
        cause = getattr(error, "orig", None) or error.__cause__ or error
        problem = f"the study's storage cannot be used: {str(cause).strip().split(chr(10), maxsplit=1)[0][:300]}"
        hint = "Nothing is lost: give the same command again when it can be reached."
        raise UnveilError(problem, where=shown(url), hint=hint) from None


class WholeLines(journal.JournalFileOpenLock):
    """The lock to write a line; whoever gets it first removes half a line, which a full disk or a lost machine leaves.
    Optuna would append the next line to it, and from then on read nothing more."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path

    def acquire(self) -> bool:
        held = super().acquire()
        try:
            with self.path.open("rb+") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
                if file.read(1) not in (b"", b"\n"):
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
        except BaseException:
            self.release()
            raise
        return held


def _database(url: str) -> RDBStorage:
    try:
        make_url(url)
    except (SQLAlchemyError, ValueError):
        expected = "sqlite:///PATH or postgresql://NAME:PASSWORD@HOST:PORT/DATABASE"
        raise UnveilError("not a database URL", where="--storage", found=url, expected=expected) from None
    waits = {"timeout": 30} if url.startswith("sqlite") else {"connect_timeout": 5}  # seconds
    driven = re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url)
    attempts = count(1)
    while True:
        try:
            return RDBStorage(driven, engine_kwargs={"connect_args": waits, "pool_pre_ping": True})
        except SQLAlchemyError as error:  # others may make the tables at the same time
            known = re.search(r"already exists|duplicate key|UNIQUE constraint", str(error))
            if next(attempts) == _ATTEMPTS or not known:
                raise
            time.sleep(0.5)


def join(
    name: str, storage: BaseStorage, sampler: Any, pruner: Any, identity: Mapping[str, Any], *, lower: bool = False
) -> optuna.Study:
    """The study of that name, created if it does not exist; one that was begun with anything else is an error."""
    parts = {"storage": storage, "study_name": name, "sampler": sampler, "pruner": pruner}
    try:
        study = optuna.create_study(**parts, direction="minimize" if lower else "maximize")
    except DuplicatedStudyError:
        study = optuna.load_study(**parts)
        for _ in range(_ATTEMPTS):  # whoever created it may not have said yet what it is
            if IDENTITY not in study.user_attrs:
                time.sleep(0.5)
    if IDENTITY not in study.user_attrs:
        study.set_user_attr(IDENTITY, dict(identity))
    begun = study.user_attrs[IDENTITY]
    known = {name: value for name, value in identity.items() if name in begun}  # an older version may have said less
    for what, before, now in differences(begun, known):
        problem = f"another {what}" if what in ("log", "world") else f"{what} = {before}, and now it is {now}"
        hint = "Join with its settings, log and validation, or name another folder: its name is the study's."
        raise UnveilError(f"the study began with {problem}", where=f"study {name}", hint=hint)
    return study


@contextmanager
def heartbeat(attempt: optuna.Trial, seconds: float) -> Iterator[threading.Event]:
    """Writes a heartbeat every few seconds while an attempt is worked on; the event is set once others gave it up."""
    lost, over = threading.Event(), threading.Event()

    def write() -> None:
        for beat in count(1):
            if over.wait(seconds) or lost.is_set():
                return
            try:
                attempt.set_user_attr(BEAT, beat)
            except UpdateFinishedTrialError:
                lost.set()
            except Exception:  # a storage out of reach for a moment: whoever finishes the trial will hear of it
                continue

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        over.set()
        thread.join()


def owner(attempts: Iterable[FrozenTrial]) -> FrozenTrial | None:
    """The attempt that counts: neither stopped nor died, as opposed to failed for a reason that stays."""
    return next((each for each in attempts if each.state != TrialState.FAIL or WHY in each.user_attrs), None)


@dataclass(frozen=True, eq=False)
class TrialQueue:
    """The trials 0 to `size` − 1 of a study."""

    study: optuna.Study
    dimensions: Mapping[str, Dimension]
    size: int
    grace: float = 90.0  # seconds without a heartbeat until an attempt is given up
    #: When each running attempt was last heard of, by our own clock, and with which heartbeat.
    heard: dict[int, tuple[object, float]] = field(default_factory=dict, init=False)

    def attempts(self) -> dict[int, list[FrozenTrial]]:
        found: dict[int, list[FrozenTrial]] = {}
        for attempt in self.study.get_trials(deepcopy=False):
            index = attempt.user_attrs.get(INDEX, self.size)
            if index < self.size:
                found.setdefault(index, []).append(attempt)
        return dict(sorted(found.items()))

    def trials(self) -> list[Trial]:
        """What came of each trial that has an attempt, in order: the same for all who look."""
        return [
            Trial(
                index,
                "failed" if counts.state == TrialState.FAIL else counts.state.name.lower(),
                dict(counts.params),
                counts.value if counts.state == TrialState.COMPLETE else None,
                [Replicate(**each) for each in counts.user_attrs.get(REPLICATES, [])],
                sum(WORKER in each.user_attrs for each in attempts),
                counts.user_attrs.get(WHY),
            )
            for index, attempts in self.attempts().items()
            if (counts := owner(attempts)) is not None
        ]

    def begin(self) -> tuple[int, optuna.Trial] | None:
        """A trial that nobody has, and our attempt at it; None: there is none, at least for now."""
        while self._has_next():
            attempt = self.study.ask(dict(self.dimensions))
            index = int(attempt.user_attrs.get(INDEX, self.size))
            counts = owner(self.attempts().get(index, []))
            if counts is not None and counts.number == attempt.number:
                attempt.set_user_attr(WORKER, {"machine": machine(), "process": os.getpid()})
                return index, attempt
            self.end(attempt, TrialState.FAIL)  # another was quicker
        return None

    def end(
        self, attempt: optuna.Trial | FrozenTrial, state: TrialState, value: float | None = None, why: str | None = None
    ) -> bool:
        """False: it was given to another in the meantime. What fails without a reason is left to whoever comes next."""
        try:
            if why is not None:
                attempt.set_user_attr(WHY, why)
            self.study.tell(attempt.number, value, state)
        except (ValueError, UpdateFinishedTrialError):
            return False
        return True

    def is_dead(self, attempt: FrozenTrial) -> bool:
        worker, now = attempt.user_attrs.get(WORKER), time.monotonic()
        if worker and worker["machine"] == machine() and is_gone(worker["process"]):
            return True
        last = worker, attempt.user_attrs.get(BEAT)
        if self.heard.get(attempt.number, (None, now))[0] != last:
            self.heard[attempt.number] = last, now
        return now - self.heard[attempt.number][1] > self.grace

    def _has_next(self) -> bool:
        """Whether an attempt waits: every trial that was given up gets one, else the first that has none yet."""
        running = [each for each in self.study.get_trials(deepcopy=False) if each.state == TrialState.RUNNING]
        gone = {each.number for each in running if self.is_dead(each) and self.end(each, TrialState.FAIL)}
        for index, attempts in self.attempts().items():
            if owner(attempts) is None:
                self._enqueue(index, attempts, died=any(each.number in gone for each in attempts))
        every = self.attempts()
        if any(each.state == TrialState.WAITING for each in map(owner, every.values()) if each is not None):
            return True
        fresh = next((index for index in range(self.size) if index not in every), None)
        if fresh is not None:
            self._enqueue(fresh)
        return fresh is not None

    def _enqueue(self, index: int, attempts: Sequence[FrozenTrial] = (), *, died: bool = False) -> None:
        """With the settings of an attempt that was begun. Where two enqueue at once, the first attempt counts."""
        nothing = optuna.create_trial(state=TrialState.WAITING)
        begun = next((each for each in attempts if WORKER in each.user_attrs), nothing)
        deaths = max((int(each.user_attrs.get(DIED, 0)) for each in attempts), default=0) + died
        why = {WHY: f"its worker died {deaths} times; out of memory, perhaps"} if deaths >= DEATHS else {}
        self.study.add_trial(
            optuna.create_trial(
                state=TrialState.FAIL if why else TrialState.WAITING,
                params=begun.params,
                distributions=begun.distributions,
                user_attrs={INDEX: index, DIED: deaths, **why},
                intermediate_values=attempts[-1].intermediate_values if attempts else {},
            )
        )


@dataclass
class ConfigurationSampler(optuna.samplers.RandomSampler):
    """Trial i has the i-th configuration, whoever asks; unless TPE, where `valid` is given, has a better guess. Guesses
    depend on what was finished when they were made: only one process alone gives the same study again."""

    configurations: Sequence[Settings]
    dimensions: Mapping[str, Dimension]
    seed: int = 0
    valid: Valid | None = None

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All settings at once: which of them go together matters."""
        return {name: each for name, each in self.dimensions.items() if not each.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        index = int(trial.user_attrs.get(INDEX, 0))  # without a trial, another was quicker
        chosen = self.configurations[index % len(self.configurations)]
        if self.valid is not None:
            seed = int(np.random.SeedSequence([self.seed, 1, index]).generate_state(1)[0])
            # Ten trials are left to chance; and to a configuration, what twenty guesses did not find.
            tpe = optuna.samplers.TPESampler(n_startup_trials=10, seed=seed, multivariate=True, constant_liar=True)
            guesses = (tpe.sample_relative(study, trial, search_space) for _ in range(20))
            chosen = next((guess for guess in guesses if guess and self.valid(guess)), chosen)
        return {name: chosen[name] for name in search_space}
