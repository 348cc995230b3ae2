"""Telling how a study goes: how many trials are over, the best so far, the time left. Others' trials count too."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import TaskID

from unveil.experiment.tune.record import Record, best_of
from unveil.experiment.tune.words import figure, settings_text
from unveil.runs.progress import passed_and_left, spell, whole_bar


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
