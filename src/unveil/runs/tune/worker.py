"""Settings and trials in words."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import TaskID

from unveil.errors import UnveilError
from unveil.files import alone_in, explained
from unveil.runs.progress import passed_and_left, spell, whole_bar
from unveil.runs.tune.claims import REPLICATES, Beat, Claim, Ledger, Pace, Record, Replicate, best_of, records
from unveil.runs.tune.storage import optuna
from unveil.runs.tune.subject import Bench
from unveil.runs.workers import Event, Failed, OnProgress
from unveil.training.trainer import CHECKPOINT


def short(name: str) -> str:
    """A setting by its last name: model.width → width."""
    return name.rpartition(".")[2].replace("_", " ")


def value_text(value: object) -> str:
    """A value as short as it can be written and still be told from others."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in one line."""
    return ", ".join(f"{short(name)} {value_text(value)}" for name, value in settings.items())


def spread(record: Record) -> float:
    """Standard deviation over the replicates; not a number for one."""
    values = [each.value for each in record.replicates]
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def figure(record: Record) -> str:
    """What came of a trial: its value with the spread of its replicates, or why it has none."""
    if record.value is None:
        return record.state if record.why is None else f"failed: {record.why}"
    off = spread(record)
    return f"{record.value:.4f}" if np.isnan(off) else f"{record.value:.4f} ±{off:.4f}"


class Watcher(Protocol):
    """Whoever wants to know how a study goes."""

    def start(self, records: Sequence[Record], total: int) -> None:
        """This is there already, of so many trials in all."""

    def advance(self, entry: int, share: float) -> None:
        """So much of our own trial is done."""

    def look(self, records: Sequence[Record]) -> None:
        """This is how all trials are now."""

    def stop(self) -> None:
        """The work is over, done or not."""


class Silent:
    """Shows nothing."""

    def start(self, records: Sequence[Record], total: int) -> None:
        """Nothing."""

    def advance(self, entry: int, share: float) -> None:
        """Nothing."""

    def look(self, records: Sequence[Record]) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


def study_watcher(console: Console | None = None) -> "Bar | Lines":
    """A live bar where a person looks, plain lines where a file does."""
    console = console or Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines(console)


@dataclass
class Bar:
    """One bar over all trials."""

    console: Console
    records: Sequence[Record] = ()
    total: int = 0

    def start(self, records: Sequence[Record], total: int) -> None:
        """Draw the bar."""
        self.records, self.total = records, total
        self.bar = whole_bar(self.console)
        self.task: TaskID = self.bar.add_task("trials", total=total, told="")
        self.bar.start()
        self._show(0.0)

    def advance(self, entry: int, share: float) -> None:
        """Move on by a part of a trial."""
        self._show(share)

    def look(self, records: Sequence[Record]) -> None:
        """Count what is over."""
        self.records = records
        self._show(0.0)

    def stop(self) -> None:
        """Take the bar away."""
        self.bar.stop()

    def _show(self, share: float) -> None:
        over = sum(each.over for each in self.records)
        title = f"{over}/{self.total} trials"
        self.bar.update(self.task, description=title, completed=over + share, told=told_best(self.records))


@dataclass
class Lines:
    """A plain line for each trial that is over."""

    console: Console
    told: set[int] = field(default_factory=set)
    total: int = 0
    before: int = 0
    begun: float = 0.0

    def start(self, records: Sequence[Record], total: int) -> None:
        """Remember when it began, and what was over by then."""
        self.told = {each.entry for each in records if each.over}
        self.total, self.before, self.begun = total, len(self.told), time.monotonic()

    def advance(self, entry: int, share: float) -> None:
        """Nothing: parts of trials are too many for lines."""

    def look(self, records: Sequence[Record]) -> None:
        """Print what is newly over."""
        for each in records:
            if each.over and each.entry not in self.told:
                self.told.add(each.entry)
                self._print(each, records)

    def stop(self) -> None:
        """Nothing to tidy up."""

    def _print(self, record: Record, records: Sequence[Record]) -> None:
        passed, left = time.monotonic() - self.begun, self.total - self.before
        parts = [
            f"{len(self.told)}/{self.total} trial {record.entry}",
            settings_text(record.settings),
            figure(record),
            f"trained in {spell(record.seconds)}",
            told_best(records),
            passed_and_left(passed, (len(self.told) - self.before) / left),
        ]
        self.console.print(" · ".join(filter(None, parts)), soft_wrap=True, highlight=False)


def told_best(records: Sequence[Record]) -> str:
    """The best so far, in words."""
    best = best_of(records)
    return "" if best is None else f"best {best.value:.4f} (trial {best.entry})"


TRIALS = "trials"


class TakenOverError(Exception):
    """Others gave this trial up and began it anew: what we do no longer counts."""


@dataclass(frozen=True, eq=False)
class Worker:
    """What a process needs to take part in a study."""

    ledger: Ledger
    bench: Bench
    replicates: int
    folder: Path
    watch: Watcher
    pace: Pace = field(default_factory=Pace)

    def work(self) -> list[Record]:
        """Until every entry is done, by us or by others, who may die and leave theirs to us."""
        self.watch.start(self.records(), self.ledger.size)
        try:
            while not self.ledger.finished():
                claim = self.ledger.claim()
                if claim is None:
                    time.sleep(self.pace.look)
                else:
                    self._do(claim)
                self.watch.look(self.records())
        finally:
            self.watch.stop()
        return self.records()

    def records(self) -> list[Record]:
        """All entries as they are now."""
        return records(self.ledger.trials(), self.ledger.size, lower=self.ledger.lower)

    def _do(self, claim: Claim) -> None:
        """One entry. Whatever stops us gives it back at once, for others to go on with."""
        place = self.folder / TRIALS / f"{claim.entry:03d}"
        try:
            with explained(place):
                place.mkdir(parents=True, exist_ok=True)
            with Beat(claim.trial, self.pace) as beat, _once_alone(place, beat):
                self._train(claim, place, beat)
        except TakenOverError:
            return
        except BaseException:
            with suppress(Exception):  # where the storage is what failed, others will see that we are gone
                self.ledger.give_back(claim.trial)
            raise

    def _train(self, claim: Claim, place: Path, beat: Beat) -> None:
        """All replicates and their mean. Settings that cannot be trained are a result too, a full disk is not."""
        try:
            done: list[Replicate] = []
            for replicate in range(self.replicates):
                done.append(self._replicate(claim, place / f"r{replicate}", replicate, beat))
                claim.trial.set_user_attr(REPLICATES, [asdict(each) for each in done])
            value = sum(each.value for each in done) / len(done)
            counted = self.ledger.done(claim, value)
        except optuna.TrialPruned:
            counted = self.ledger.pruned(claim)
        except optuna.exceptions.UpdateFinishedTrialError:
            raise TakenOverError from None
        except (UnveilError, ArithmeticError, MemoryError, RuntimeError) as error:
            if isinstance(error.__cause__, OSError):
                raise
            counted = self.ledger.failed(claim, str(error) or type(error).__name__)
        if counted:
            _sweep(place)

    def _replicate(self, claim: Claim, place: Path, replicate: int, beat: Beat) -> Replicate:
        reports = replicate == 0 and not isinstance(self.ledger.study.pruner, optuna.pruners.NopPruner)
        share = _Shares(replicate, self.replicates, lambda part: self.watch.advance(claim.entry, part))
        told = Told(share, beat, claim.trial if reports else None)
        return self.bench.replicate(claim.trial.params, replicate, place, told)


@contextmanager
def _once_alone(place: Path, beat: Beat) -> Iterator[None]:
    """The folder of a trial, for us alone. Whoever was given up may be in there until it hears of that, or ends."""
    with ExitStack() as stack:
        while not _entered(stack, place):
            if beat.lost.wait(beat.pace.look):
                raise TakenOverError
        yield


def _entered(stack: ExitStack, place: Path) -> bool:
    with suppress(UnveilError):
        stack.enter_context(alone_in(place))
        return True
    return False


@dataclass
class _Shares:
    """How much of a trial is done, from how much of one replicate is."""

    replicate: int
    of: int
    tell: Callable[[float], None]

    def __call__(self, part: float) -> None:
        self.tell((self.replicate + part) / self.of)


@dataclass
class Told:
    """Is told how far a replicate is and how good; reports to the pruner, and stops what no longer counts."""

    share: Callable[[float], None]
    beat: Beat
    trial: "optuna.Trial | None"  # None: nobody prunes

    def part(self, share: float) -> None:
        """So much is done."""
        self.share(share)
        if self.beat.lost.is_set():
            raise TakenOverError

    def judged(self, epoch: int, value: float) -> None:
        """So good it is after an epoch."""
        if self.trial is not None:
            self._report(self.trial, epoch, value)

    def _report(self, trial: "optuna.Trial", epoch: int, value: float) -> None:
        known = trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values
        if epoch not in known:  # as after a restart that went back some epochs
            trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned


def _sweep(place: Path) -> None:
    """What training would go on from is large, and no longer needed; the file of epochs stays."""
    for folder in place.glob("r*"):
        (folder / CHECKPOINT).unlink(missing_ok=True)
        if not any(folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Hand:
    """A job of the grid that takes part in a study until all its trials are over."""

    number: int
    take_part: Callable[["Telling"], object]

    @property
    def key(self) -> str:
        """Its name."""
        return f"worker {self.number}"

    @property
    def cost(self) -> float:
        """All share the work."""
        return 1.0

    def run(self, tell: OnProgress) -> Mapping[str, Any]:
        """What came of the trials is in the study."""
        self.take_part(Telling(tell))
        return {}


@dataclass
class Telling(Silent):
    """Passes on that something happened; how far the study is, the one who looks on reads there."""

    tell: OnProgress

    def advance(self, entry: int, share: float) -> None:
        """Part of a trial is done."""
        self.tell(share)


def overseen(worker: Worker, events: Iterator[Event]) -> list[Record]:
    """All trials, done by others; we only show how it goes. A worker that is lost leaves its trials to the rest."""
    lost: list[Failed] = []
    worker.watch.start(worker.records(), worker.ledger.size)
    try:
        for event in events:
            if isinstance(event, Failed):
                lost.append(event)
            worker.watch.look(worker.records())
    finally:
        close = getattr(events, "close", lambda: None)
        close()
        worker.watch.stop()
    if not worker.ledger.finished():
        raise _unfinished(lost, worker)
    return worker.records()


def _unfinished(lost: Sequence[Failed], worker: Worker) -> UnveilError:
    over = sum(each.over for each in worker.records())
    why = lost[0].why.rstrip(".") if lost else "nobody is left to do the rest"
    return UnveilError(
        f"{over} of {worker.ledger.size} trials are over, and every worker is gone: {why}",
        hint="What is done is kept: the same command goes on.",
    )
