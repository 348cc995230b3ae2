"""How a grid goes: one bar over all its cells on a terminal, a line for each cell elsewhere."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import TaskID

from unveil.experiment.grid.job import Advanced, Begun, Done, Event, Failed, Job
from unveil.experiment.progress import passed_and_left, spell, whole_bar

#: Cells at work that are named beside the bar.
_NAMED = 3


class Watcher(Protocol):
    """Whoever wants to know how a grid goes."""

    def start(self, left: Sequence[Job], total: int, what: str) -> None:
        """These jobs are to be done, of so many in all; `what` they are: cells, worlds."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def stop(self) -> None:
        """The work is over, done or not."""


class Silent:
    """Shows nothing."""

    def start(self, left: Sequence[Job], total: int, what: str) -> None:
        """Nothing."""

    def event(self, event: Event) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


def grid_watcher(console: Console | None = None) -> "Bar | Lines":
    """A live bar where a person looks, plain lines where a file does."""
    console = console or Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines(console)


@dataclass
class _Count:
    """How much of the work is done, by the costs of the jobs."""

    cost: dict[str, float] = field(default_factory=dict)
    share: dict[str, float] = field(default_factory=dict)
    running: dict[str, None] = field(default_factory=dict)  # in the order of their beginning
    total: int = 0
    over: int = 0
    what: str = "cells"

    def start(self, left: Sequence[Job], total: int, what: str) -> None:
        self.cost = {job.key: job.cost for job in left}
        self.share, self.running = {}, {}
        self.total, self.over, self.what = total, total - len(left), what

    def event(self, event: Event) -> None:
        match event:
            case Begun(key):
                self.running[key] = None
            case Advanced(key, share):
                self.share[key] = share
            case Done(key) | Failed(key):
                self.share[key] = 1.0
                self.running.pop(key, None)
                self.over += 1

    @property
    def title(self) -> str:
        """3/20 cells."""
        return f"{self.over}/{self.total} {self.what}"

    @property
    def done(self) -> float:
        """Σ cost · share over the jobs that were left when the work began."""
        return sum(self.cost[key] * share for key, share in self.share.items())

    @property
    def whole(self) -> float:
        return sum(self.cost.values())


@dataclass
class Bar:
    """One bar, with the cells that are at work."""

    console: Console
    count: _Count = field(default_factory=_Count)

    def start(self, left: Sequence[Job], total: int, what: str) -> None:
        """Draw the bar."""
        self.count.start(left, total, what)
        self.bar = whole_bar(self.console)
        self.task: TaskID = self.bar.add_task(self.count.title, total=self.count.whole, told="")
        self.bar.start()

    def event(self, event: Event) -> None:
        """Move on."""
        self.count.event(event)
        if isinstance(event, Failed):
            self.bar.console.print(f"{event.key}: {event.why}", highlight=False, soft_wrap=True)
        told = ", ".join(list(self.count.running)[:_NAMED])
        self.bar.update(self.task, description=self.count.title, completed=self.count.done, told=told)

    def stop(self) -> None:
        """Take the bar away."""
        self.bar.stop()


@dataclass
class Lines:
    """A plain line for each cell that is over."""

    console: Console
    count: _Count = field(default_factory=_Count)
    begun: float = 0.0

    def start(self, left: Sequence[Job], total: int, what: str) -> None:
        """Remember when it began."""
        self.count.start(left, total, what)
        self.begun = time.monotonic()

    def event(self, event: Event) -> None:
        """Print what is over."""
        self.count.event(event)
        if isinstance(event, Done | Failed):
            how = f"done in {spell(event.seconds)}" if isinstance(event, Done) else f"failed: {event.why}"
            passed, share = time.monotonic() - self.begun, self.count.done / self.count.whole
            told = [f"{self.count.title}: {event.key}", how, passed_and_left(passed, share)]
            self.console.print(" · ".join(told), soft_wrap=True, highlight=False)

    def stop(self) -> None:
        """Nothing to tidy up."""
