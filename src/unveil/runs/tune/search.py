"""Tuning from end to end: what a user got wrong is found before the study is touched; then work, then results."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.data.readers.database import shown
from unveil.errors import UnveilError
from unveil.files import alone_in, explained
from unveil.runs.announce import Tell
from unveil.runs.progress import Silent, Watcher
from unveil.runs.tune.claims import (
    REPLICATES,
    Claim,
    Claims,
    Heartbeat,
    Liveness,
    SettingsSampler,
    Timing,
    distributions,
)
from unveil.runs.tune.space import Settings
from unveil.runs.tune.storage import check_reachable, join, opened, optuna
from unveil.runs.tune.study import Plan, Replicate, Study, Trial, best_of, settings_text
from unveil.runs.tune.study_report import begin, check_folder, write
from unveil.runs.workers import Advanced, Done, Engine, Event, Failed, OnProgress
from unveil.training.trainer import CHECKPOINT

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

    from unveil.runs.tune.study import Subject, TrialContext

TRIALS = SIZE = "trials"
#: Share of the epochs before a trial may be pruned, and complete trials before any is.
_WARM_UP, _STARTUP = 0.2, 5


@dataclass(frozen=True)
class Location:
    """The folder of a study, the database where it is not kept in the folder, and the times of heartbeats."""

    folder: Path
    storage: str | None = None
    timing: Timing = field(default_factory=Timing)

    @property
    def shown(self) -> str:
        """The storage without its password."""
        return "journal" if self.storage is None else shown(self.storage)


@dataclass(frozen=True)
class Workers:
    """So many processes of this machine, or tasks of a cluster. Each joins the study as the same command would."""

    engine: Engine
    size: int


def tune(
    subject: "Subject",
    plan: Plan,
    location: Location,
    *,
    watch: Watcher | None = None,
    tell: Tell = print,
    command: str = "",
    workers: Workers | None = None,
) -> Study:
    """Work on a study until all its trials are over, whoever does them; then write the results.

    With `workers` they do the trials, and this process only shows how it goes.
    """
    check_folder(location.folder, location.shown)
    check_reachable(location.storage)
    if plan.prune and subject.epochs is None:
        raise UnveilError("what is evaluated at its end only cannot be pruned", where="--prune", hint="Leave it out.")
    context = subject.context(plan.space.dimensions.keys(), tell)
    settings = _settings(subject, plan, context, tell)
    name = location.folder.resolve().name
    study = Study(name, plan, subject, context.fingerprint, location.shown, [], len(settings))
    with _storage(location, study) as storage:
        claims = _claims(study, storage, settings, context, location.timing)
        worker = Worker(claims, context, plan.replicates, location, _Trials(watch or Silent()))
        try:
            trials = worker.work() if workers is None else _oversee(worker, workers, subject, plan, command)
        except KeyboardInterrupt:  # what is over is written, for whoever has no more time
            study = replace(study, trials=[each for each in claims.trials() if each.over])
            if study.count("complete"):
                write(location.folder, study, command)
            raise
    study = replace(study, trials=trials)
    write(location.folder, study, command)
    return study


def _settings(subject: "Subject", plan: Plan, context: "TrialContext", tell: Tell) -> list[Settings]:
    """The settings of all trials; the first of them is built, to find errors before anything is trained."""
    plan.space.check(subject.changed)
    found = plan.settings(subject.seed, partial(is_valid, subject))
    context.announce(found[0], tell)
    if plan.trials is not None and len(found) < plan.trials:
        tell(f"trials     {len(found)} instead of {plan.trials}: the space has no more combinations")
    return found


def is_valid(subject: "Subject", settings: Mapping[str, Any]) -> bool:
    """Whether a subject can have these settings together."""
    try:
        subject.changed(settings)
    except UnveilError:
        return False
    return True


@contextmanager
def _storage(location: Location, study: Study) -> Iterator["BaseStorage"]:
    """A journal lies in the folder; no folder is bound to a database that cannot be used."""
    if location.storage is None:
        begin(location.folder, study)
    with opened(location.storage, location.folder) as storage:
        begin(location.folder, study)
        yield storage


def _claims(
    study: Study, storage: "BaseStorage", settings: list[Settings], context: "TrialContext", timing: Timing
) -> Claims:
    subject, plan, spread = study.subject, study.plan, distributions(study.plan.space)
    valid = partial(is_valid, subject) if plan.sampler == "tpe" else None
    pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
    if plan.prune:
        warm_up = int(_WARM_UP * (subject.epochs or 0))
        pruner = optuna.pruners.MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=warm_up)
    sampler = SettingsSampler(settings, spread, subject.seed, valid)
    joined = join(study.name, storage, sampler, pruner, plan.identity(subject, context), lower=subject.lower)
    known = int(joined.user_attrs.get(SIZE, 0))
    if len(settings) < known:  # a study may grow and not shrink: what was done is not thrown away
        hint = f"Join with --trials {known} or more, or name another folder."
        raise UnveilError("the study has more trials", where=f"study {study.name}", found=len(settings), hint=hint)
    if len(settings) > known:
        joined.set_user_attr(SIZE, len(settings))
    return Claims(joined, spread, len(settings), Liveness(timing))


class TakenOverError(Exception):
    """Others gave this trial up and began it anew: what we do no longer counts."""


@dataclass(frozen=True, eq=False)
class Worker:
    """What a process needs to work on a study."""

    claims: Claims
    context: "TrialContext"
    replicates: int
    location: Location
    progress: "_Trials"

    def work(self) -> list[Trial]:
        """Until every trial is done, by us or by others, who may die and leave theirs to us."""
        with self.progress.shown(self.claims):
            while not self.claims.finished():
                claim = self.claims.claim()
                if claim is None:
                    time.sleep(self.location.timing.look)
                else:
                    self._do(claim)
                self.progress.look(self.claims.trials())
        return self.claims.trials()

    def _do(self, claim: Claim) -> None:
        """One trial. Whatever stops us gives it back at once, for others to go on with."""
        place, timing = self.location.folder / TRIALS / f"{claim.index:03d}", self.location.timing
        try:
            with explained(place):
                place.mkdir(parents=True, exist_ok=True)
            with Heartbeat(claim.attempt, timing) as heartbeat, _once_alone(place, heartbeat):
                self._train(claim, place, heartbeat)
        except TakenOverError:
            return
        except BaseException:
            with suppress(Exception):  # where the storage is what failed, others will see that we are gone
                self.claims.give_back(claim)
            raise

    def _train(self, claim: Claim, place: Path, heartbeat: Heartbeat) -> None:
        """All replicates and their mean. Settings that cannot be trained are a result too, a full disk is not."""
        try:
            done: list[Replicate] = []
            for number in range(self.replicates):
                reporter = _Reporter(claim, number, self.replicates, heartbeat, self.progress)
                done.append(self.context.replicate(claim.attempt.params, number, place / f"r{number}", reporter))
                claim.attempt.set_user_attr(REPLICATES, [asdict(each) for each in done])
            counted = self.claims.complete(claim, sum(each.value for each in done) / len(done))
        except optuna.TrialPruned:
            counted = self.claims.prune(claim)
        except optuna.exceptions.UpdateFinishedTrialError:
            raise TakenOverError from None
        except (UnveilError, ArithmeticError, MemoryError, RuntimeError) as error:
            if isinstance(error.__cause__, OSError):
                raise
            counted = self.claims.fail(claim, str(error) or type(error).__name__)
        if counted:
            _remove_checkpoints(place)


@contextmanager
def _once_alone(place: Path, heartbeat: Heartbeat) -> Iterator[None]:
    """The folder of a trial, for us alone. Whoever was given up may be in there until it hears of that, or ends."""
    with ExitStack() as stack:
        while True:
            with suppress(UnveilError):
                stack.enter_context(alone_in(place))
                break
            if heartbeat.lost.wait(heartbeat.timing.look):
                raise TakenOverError
        yield


def _remove_checkpoints(place: Path) -> None:
    """They are large, and no longer needed; the file of epochs stays."""
    for folder in place.glob("r*"):
        (folder / CHECKPOINT).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class _Reporter:
    """Shows how far a replicate is, reports its metric to the pruner, and stops what no longer counts."""

    claim: Claim
    replicate: int
    of: int
    heartbeat: Heartbeat
    progress: "_Trials"

    def advance(self, share: float) -> None:
        self.progress.advance(self.claim.index, (self.replicate + share) / self.of)
        if self.heartbeat.lost.is_set():
            raise TakenOverError

    def validated(self, epoch: int, value: float) -> None:
        attempt = self.claim.attempt
        if self.replicate or isinstance(attempt.study.pruner, optuna.pruners.NopPruner):
            return
        known = attempt.study.get_trials(deepcopy=False)[attempt.number].intermediate_values
        if epoch not in known:  # as after a restart that went back some epochs
            attempt.report(value, epoch)
        if attempt.should_prune():
            raise optuna.TrialPruned


@dataclass
class _Trials:
    """Trials as jobs of the progress display, whoever does them."""

    watch: Watcher
    left: set[int] = field(default_factory=set)

    @contextmanager
    def shown(self, claims: Claims) -> Iterator[None]:
        over = {each.index for each in claims.trials() if each.over}
        self.left = set(range(claims.size)) - over
        self.watch.start([WorkerJob(_key(index)) for index in sorted(self.left)], claims.size, "trials")
        try:
            yield
        finally:
            self.watch.stop()

    def advance(self, index: int, share: float) -> None:
        self.watch.event(Advanced(_key(index), share))

    def look(self, trials: Sequence[Trial]) -> None:
        """Report what is newly over."""
        for each in trials:
            if each.over and each.index in self.left:
                self.left.remove(each.index)
                best = best_of(trials)
                said = "" if best is None else f"best {best.value:.4f} (trial {best.index})"
                notes = (settings_text(each.settings), str(each), said)
                self.watch.event(Done(_key(each.index), {}, each.seconds, tuple(filter(None, notes))))


def _key(index: int) -> str:
    return f"trial {index}"


@dataclass(frozen=True)
class WorkerJob:
    """A job that works on a study until all its trials are over."""

    key: str
    work: Callable[[Watcher], object] = lambda _: None
    cost: float = 1.0

    def run(self, on_progress: OnProgress) -> Mapping[str, Any]:
        """What came of the trials is in the study."""
        self.work(_Forwarding(on_progress))
        return {}


@dataclass
class _Forwarding(Silent):
    """Passes on that something happened; the process that oversees reads in the study how far it is."""

    on_progress: OnProgress

    def event(self, event: Event) -> None:
        if isinstance(event, Advanced):
            self.on_progress(event.share)


def _work(subject: "Subject", plan: Plan, location: Location, command: str, watch: Watcher) -> None:
    tune(subject, plan, location, watch=watch, tell=lambda _: None, command=command)


def _oversee(worker: Worker, workers: Workers, subject: "Subject", plan: Plan, command: str) -> list[Trial]:
    """All trials, done by others. A worker that is lost leaves its trials to the rest."""
    there = replace(worker.location, folder=worker.location.folder.resolve())
    jobs = [WorkerJob(f"worker {n}", partial(_work, subject, plan, there, command)) for n in range(workers.size)]
    events, lost = workers.engine.run(jobs), list[Failed]()
    with worker.progress.shown(worker.claims):
        try:
            for event in events:
                lost += [event] if isinstance(event, Failed) else []
                worker.progress.look(worker.claims.trials())
        finally:
            getattr(events, "close", lambda: None)()
    trials = worker.claims.trials()
    if not worker.claims.finished():
        why = lost[0].why.rstrip(".") if lost else "nobody is left to do the rest"
        over = f"{sum(each.over for each in trials)} of {worker.claims.size} trials are over"
        hint = "What is done is kept: the same command goes on."
        raise UnveilError(f"{over}, and every worker is gone: {why}", hint=hint)
    return trials
