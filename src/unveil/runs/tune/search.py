"""Tuning from end to end: what a user got wrong is found before the study is touched; then work, then results."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.pruners import MedianPruner, NopPruner
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from unveil.data.readers.database import shown
from unveil.errors import UnveilError
from unveil.files import alone_in, explained
from unveil.runs.config import Tell
from unveil.runs.progress import Silent, Watcher
from unveil.runs.tune.storage import REPLICATES, ConfigurationSampler, TrialQueue, heartbeat, join, opened
from unveil.runs.tune.study import Plan, Replicate, Settings, Study, error_of, settings_text
from unveil.runs.tune.study_report import begin, check_folder, write
from unveil.runs.tune.subjects import Subject, TrialContext
from unveil.runs.workers import Advanced, Done, Engine, Event, Failed, OnProgress
from unveil.training.trainer import CHECKPOINT

SIZE = "trials"


@dataclass(frozen=True)
class Location:
    """The folder of a study, the database where it is not kept in the folder, and how its workers watch each other."""

    folder: Path
    storage: str | None = None
    beat: float = 10.0  # seconds between two heartbeats
    grace: float = 90.0  # seconds without one until a trial is given up
    look: float = 2.0  # seconds between two looks


def tune(
    subject: Subject,
    plan: Plan,
    location: Location,
    *,
    watch: Watcher | None = None,
    tell: Tell = print,
    command: str = "",
    engine: Engine | None = None,
    workers: int = 1,
) -> Study:
    """Work on a study until all its trials are over, whoever does them; then write the results. With an `engine` its
    workers join the study as the same command would, and this process only shows how it goes."""
    folder, url = location.folder, location.storage
    storage_name = "journal" if url is None else shown(url)
    check_folder(folder, storage_name)
    if url is not None and not url.startswith("sqlite"):  # a log may take minutes to read; a server should answer first
        with opened(url, folder):
            pass
    if plan.prune and subject.objective.epochs is None:
        raise UnveilError("what is evaluated at its end only cannot be pruned", where="--prune", hint="Leave it out.")
    context = subject.context(plan.space.dimensions.keys(), tell)
    plan.space.check(subject.changed)
    configurations = plan.configurations(subject.objective.seed, partial(is_valid, subject))
    context.announce(configurations[0], tell)  # built, to find errors before anything is trained
    if plan.trials is not None and len(configurations) < plan.trials:
        tell(f"trials     {len(configurations)} instead of {plan.trials}: the space has no more combinations")
    study = Study(folder.resolve().name, plan, subject, context.fingerprint, storage_name, [], len(configurations))
    if url is None:  # a journal lies in the folder; no folder is bound to a database that cannot be used
        begin(folder, study)
    with opened(url, folder) as storage:
        begin(folder, study)
        queue = _queue(study, storage, configurations, context, location.grace)
        arguments = subject, plan, replace(location, folder=folder.resolve()), command
        jobs = [TuneJob(f"worker {n}", arguments) for n in range(workers)]
        try:
            _Session(queue, study, context, location, watch or Silent()).run(engine, jobs)
        except KeyboardInterrupt as stop:  # what is over is written, for whoever has no more time
            study = replace(study, trials=[each for each in queue.trials() if each.over])
            if not study.count("complete"):
                raise
            write(folder, study, command)
            raise KeyboardInterrupt("tuning was stopped; finished trials are reported") from stop
        study = replace(study, trials=queue.trials())
    write(folder, study, command)
    return study


def is_valid(subject: Subject, settings: Settings) -> bool:
    """Whether a subject can have these settings together."""
    return error_of(subject.changed, settings) is None


def _queue(
    study: Study, storage: BaseStorage, configurations: list[Settings], context: TrialContext, grace: float
) -> TrialQueue:
    subject, plan, size = study.subject, study.plan, study.size
    objective, dimensions = subject.objective, plan.space.dimensions
    valid = partial(is_valid, subject) if plan.sampler == "tpe" else None
    sampler = ConfigurationSampler(configurations, dimensions, objective.seed, valid)
    # Nothing is pruned before five trials are complete, nor in the first fifth of the epochs.
    pruner = MedianPruner(5, int(0.2 * (objective.epochs or 0))) if plan.prune else NopPruner()
    # What decides the figures of a study; the number of trials does not: a study may grow.
    identity = {"log": context.fingerprint, "world": context.origin, **subject.identity(), "space": plan.space.plain()}
    identity |= {name: getattr(plan, name) for name in ("replicates", "sampler", "prune")}
    joined = join(study.name, storage, sampler, pruner, identity, lower=objective.lower)
    known = int(joined.user_attrs.get(SIZE, 0))
    if size < known:  # what was done is not thrown away
        hint = f"Join with --trials {known} or more, or name another folder."
        raise UnveilError("the study has more trials", where=f"study {study.name}", found=size, hint=hint)
    if size > known:
        joined.set_user_attr(SIZE, size)
    return TrialQueue(joined, dimensions, size, grace)


@dataclass(frozen=True, eq=False)
class _Session:
    """A process at a study: shows its trials as jobs, whoever does them, and does some itself."""

    queue: TrialQueue
    study: Study  # its trials are in the queue
    context: TrialContext
    location: Location
    watch: Watcher
    left: set[int] = field(default_factory=set)  # trials that are not over

    def run(self, engine: Engine | None, jobs: Sequence["TuneJob"]) -> None:
        self.left.update(set(range(self.queue.size)) - {each.index for each in self.queue.trials() if each.over})
        self.watch.start([TuneJob(f"trial {index}") for index in sorted(self.left)], self.queue.size, "trials")
        events, lost = self._work() if engine is None else engine.run(jobs), list[Failed]()
        try:
            for event in events:
                lost += [event] if isinstance(event, Failed) else []  # it leaves its trials to the rest
                self._look()
        finally:
            getattr(events, "close", lambda: None)()
            self.watch.stop()
        if self.left:
            why = lost[0].why.rstrip(".") if lost else "nobody is left to do the rest"
            over = f"{self.queue.size - len(self.left)} of {self.queue.size} trials are over"
            hint = "What is done is kept: the same command goes on."
            raise UnveilError(f"{over}, and every worker is gone: {why}", hint=hint)

    def _work(self) -> Iterator[None]:
        """One trial after another, also those that others leave to us when they die."""
        while self.left:
            if begun := self.queue.begin():
                self._do(*begun)
            else:
                time.sleep(self.location.look)
            yield

    def _look(self) -> None:
        now = replace(self.study, trials=self.queue.trials())
        for each in now.trials:
            if each.over and each.index in self.left:
                self.left.remove(each.index)
                best = now.ranked()[0]
                said = [] if best.value is None else [f"best {best.value:.4f} (trial {best.index})"]
                notes = [settings_text(each.settings), str(each), *said]
                self.watch.event(Done(f"trial {each.index}", {}, each.seconds, notes))

    def _do(self, index: int, attempt: optuna.Trial) -> None:
        """One trial. Whatever stops us gives it back at once, for others to go on with."""
        place = self.location.folder / "trials" / f"{index:03d}"
        try:
            with explained(place):
                place.mkdir(parents=True, exist_ok=True)
            with heartbeat(attempt, self.location.beat) as lost, ExitStack() as stack:
                while True:  # whoever was given up is there until it hears of that, or ends
                    try:
                        stack.enter_context(alone_in(place))
                        break
                    except UnveilError:
                        if lost.wait(self.location.look):
                            return
                self._train(index, attempt, place, lost)
        except UpdateFinishedTrialError:
            return  # others gave this trial up and began it anew: what we do no longer counts
        except BaseException:
            with suppress(Exception):  # where the storage is what failed, others will see that we are gone
                self.queue.end(attempt, TrialState.FAIL)
            raise

    def _train(self, index: int, attempt: optuna.Trial, place: Path, lost: threading.Event) -> None:
        """All replicates and their mean. Settings that cannot be trained are a result too, a full disk is not."""
        plan, done = self.study.plan, list[Replicate]()

        def report(share: float, validated: tuple[int, float] | None = None) -> None:
            """Show how far the replicate is, and stop what no longer counts or falls behind in its first."""
            self.watch.event(Advanced(f"trial {index}", (len(done) + share) / plan.replicates))
            if lost.is_set():
                raise UpdateFinishedTrialError
            if validated is not None and plan.prune and not done:
                epoch, value = validated
                known = self.queue.study.get_trials(deepcopy=False)[attempt.number].intermediate_values
                if epoch not in known:  # a restart may go back some epochs
                    attempt.report(value, epoch)
                if attempt.should_prune():
                    raise optuna.TrialPruned

        try:
            for number in range(plan.replicates):
                done.append(self.context.replicate(attempt.params, number, place / f"r{number}", report))
                attempt.set_user_attr(REPLICATES, [asdict(each) for each in done])
            mean = sum(each.value for each in done) / len(done)
            counted = self.queue.end(attempt, TrialState.COMPLETE, mean)
        except optuna.TrialPruned:
            counted = self.queue.end(attempt, TrialState.PRUNED)
        except UpdateFinishedTrialError:
            raise
        except (UnveilError, ArithmeticError, MemoryError, RuntimeError) as error:
            if isinstance(error.__cause__, OSError):
                raise
            counted = self.queue.end(attempt, TrialState.FAIL, why=str(error) or type(error).__name__)
        if counted:  # checkpoints are large, and no longer needed; the file of epochs stays
            for path in place.glob(f"r*/{CHECKPOINT}"):
                path.unlink(missing_ok=True)


@dataclass(frozen=True)
class TuneJob:
    """A job that works on a study until all its trials are over: what came of them is in the study."""

    key: str
    arguments: tuple[Subject, Plan, Location, str] | None = None
    cost: float = 1.0

    def run(self, on_progress: OnProgress) -> Mapping[str, Any]:
        assert self.arguments is not None
        subject, plan, location, command = self.arguments
        tune(subject, plan, location, watch=_Forwarding(on_progress), tell=lambda _: None, command=command)
        return {}


@dataclass
class _Forwarding(Silent):
    """Passes on that something happened; the process that oversees reads in the study how far it is."""

    on_progress: OnProgress

    def event(self, event: Event) -> None:
        if isinstance(event, Advanced):
            self.on_progress(event.share)
