"""How a loop goes, where there is no terminal: a line for each round of each model."""

import time

from rich.console import Console

from unveil.experiment.grid.job import Advanced, Event
from unveil.experiment.grid.progress import Bar, Lines
from unveil.experiment.progress import passed_and_left


def loop_watcher(trainings: int, console: Console | None = None) -> "Bar | RoundLines":
    """A live bar where a person looks, plain lines where a file does."""
    console = console or Console(stderr=True)
    return Bar(console) if console.is_terminal else RoundLines(console, trainings)


class RoundLines(Lines):
    """A plain line for each round that is over."""

    def __init__(self, console: Console, rounds: int) -> None:
        super().__init__(console)
        self.rounds = rounds

    def event(self, event: Event) -> None:
        """Print the round, where the event ends one that is not the last."""
        before = self.count.share.get(event.key, 0.0) if isinstance(event, Advanced) else 0.0
        super().event(event)
        if isinstance(event, Advanced) and self._whole(before) < self._whole(event.share) < self.rounds:
            share = self.count.done / self.count.whole
            left = passed_and_left(time.monotonic() - self.begun, share)
            told = f"{event.key} · {self._whole(event.share)} of {self.rounds} rounds · {left}"
            self.console.print(told, soft_wrap=True, highlight=False)

    def _whole(self, share: float) -> int:
        return int(share * self.rounds + 1e-9)
