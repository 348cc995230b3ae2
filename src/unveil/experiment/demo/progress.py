"""How the demo goes: one bar for all its trainings on a terminal, a line now and then elsewhere."""

import time
from dataclasses import dataclass

from rich.console import Console
from rich.progress import TaskID

from unveil.runs.progress import passed_and_left, whole_bar
from unveil.training.checkpoint import Best, Epoch
from unveil.training.progress import Plan

#: Lines a training, where there is no terminal.
_LINES = 3


@dataclass
class _Count:
    """How much of all trainings is done: they are equally long."""

    trainings: int
    place: int = 0
    name: str = ""
    plan: Plan | None = None

    def next(self, name: str) -> None:
        self.place, self.name = self.place + 1, name

    def start(self, plan: Plan) -> None:
        self.plan = plan

    def title(self, epoch: int) -> str:
        assert self.plan is not None
        return f"{self.place}/{self.trainings} {self.name:<5} · epoch {epoch}/{self.plan.epochs}"


def demo_watcher(trainings: int, console: Console | None = None) -> "DemoBar | DemoLines":
    """A live bar where a person looks, plain lines where a file does."""
    console = console or Console(stderr=True)
    return DemoBar(trainings, console) if console.is_terminal else DemoLines(trainings, console)


class DemoBar(_Count):
    """One bar over the batches of all trainings, with what is being trained, the best so far and the time left."""

    def __init__(self, trainings: int, console: Console) -> None:
        super().__init__(trainings)
        self.bar = whole_bar(console)
        self.task: TaskID = self.bar.add_task("drawing the log", total=None, told="")
        self.done = 0

    def __enter__(self) -> "DemoBar":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def start(self, plan: Plan) -> None:
        """Now it is known how long a training is."""
        super().start(plan)
        self.bar.update(self.task, description=self.title(1), total=self.trainings * plan.epochs * plan.batches)

    def batch(self, loss: float) -> None:
        """Move on by one."""
        self.done += 1
        self.bar.update(self.task, completed=self.done)

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """Name the next epoch and the best one."""
        assert self.plan is not None
        told = "" if best is None else f"best {best.value:.3f}"
        self.bar.update(self.task, description=self.title(min(epoch.epoch + 1, self.plan.epochs)), told=told)

    def stop(self) -> None:
        """A training that stopped early is a whole one to the bar."""
        assert self.plan is not None
        self.done = self.place * self.plan.epochs * self.plan.batches
        self.bar.update(self.task, completed=self.done)


class DemoLines(_Count):
    """A few plain lines a training."""

    def __init__(self, trainings: int, console: Console) -> None:
        super().__init__(trainings)
        self.console, self.begun = console, time.monotonic()

    def __enter__(self) -> "DemoLines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def batch(self, loss: float) -> None:
        """Nothing: batches are too many for lines."""

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """Print the last epoch, and some on the way to it."""
        assert self.plan is not None
        if epoch.epoch % -(-self.plan.epochs // _LINES) and epoch.epoch != self.plan.epochs:
            return
        told = [self.title(epoch.epoch), f"loss {epoch.loss:.3f}"]
        if best is not None:
            told.append(f"best validation {self.plan.monitor} {best.value:.3f}")
        self.console.print(" · ".join([*told, self._left(epoch.epoch)]), soft_wrap=True, highlight=False)

    def _left(self, epoch: int) -> str:
        assert self.plan is not None
        done = (self.place - 1 + epoch / self.plan.epochs) / self.trainings
        return passed_and_left(time.monotonic() - self.begun, done)

    def stop(self) -> None:
        """Nothing to tidy up."""
