"""One worker of a study: takes entries, trains their replicates, and says what came of them."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from unveil.errors import UnveilError
from unveil.experiment.tune.alive import Beat, Pace
from unveil.experiment.tune.ledger import Claim, Ledger
from unveil.experiment.tune.library import optuna
from unveil.experiment.tune.progress import Watcher
from unveil.experiment.tune.record import REPLICATES, Record, Replicate, records
from unveil.experiment.tune.subjects.base import Bench
from unveil.files import explained
from unveil.locking import alone_in
from unveil.training.trainer import CHECKPOINT

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
