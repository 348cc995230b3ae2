"""Several workers of one study, started by one command: processes of this machine, or tasks of a cluster.

Each joins the study as anyone may who gives the same command; the one who started them looks on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unveil.errors import UnveilError
from unveil.experiment.tune.progress import Silent
from unveil.experiment.tune.record import Record
from unveil.experiment.tune.work import Worker
from unveil.runs.workers import Event, Failed, OnProgress


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
