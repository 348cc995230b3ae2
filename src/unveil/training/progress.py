"""What a person sees while a model trains: a live bar on a terminal, a line per epoch elsewhere, or nothing."""

from dataclasses import dataclass, field
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from unveil.training.checkpoint import Best, Epoch


@dataclass(frozen=True)
class Plan:
    """What lies ahead: `epochs` of `batches`, the first `done` of them over already."""

    epochs: int
    batches: int
    done: int
    monitor: str


class Watcher(Protocol):
    """Whoever wants to know how training goes. `stop` is called however training ends."""

    def start(self, plan: Plan) -> None:
        """Training begins or goes on."""

    def batch(self, loss: float) -> None:
        """A batch is done; `loss` is the mean of the epoch so far."""

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """An epoch is done, validated and checkpointed."""

    def stop(self) -> None:
        """Training is over."""


class Silent:
    """Shows nothing."""

    def start(self, plan: Plan) -> None:
        """Nothing."""

    def batch(self, loss: float) -> None:
        """Nothing."""

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


def watcher(console: Console | None = None) -> Watcher:
    """A live bar where a person looks, plain lines where a file does."""
    console = console or Console(stderr=True)
    return Live(console) if console.is_terminal else Lines(console)


@dataclass
class Lines:
    """One plain line per epoch."""

    console: Console
    plan: Plan | None = None

    def start(self, plan: Plan) -> None:
        """Remember what is to come."""
        self.plan = plan

    def batch(self, loss: float) -> None:
        """Nothing: batches are too many for lines."""

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """Print the epoch."""
        assert self.plan is not None
        parts = [f"epoch {epoch.epoch}/{self.plan.epochs}", f"loss {epoch.loss:.4f}", f"{epoch.seconds:.1f} s"]
        if epoch.validation is not None:
            parts.append(f"validation {self.plan.monitor} {epoch.validation[self.plan.monitor]:.4f}")
        self.console.print(" · ".join(parts + shown(best)), soft_wrap=True, highlight=False)

    def stop(self) -> None:
        """Nothing to tidy up."""


@dataclass
class Live:
    """A bar over all batches of the run with loss, best validation and time left."""

    console: Console
    plan: Plan | None = None
    bar: Progress = field(init=False)
    task: TaskID = field(init=False)
    at: int = 0
    best: str = ""

    def start(self, plan: Plan) -> None:
        """Draw the bar."""
        self.plan, self.at = plan, plan.done
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.task = self.bar.add_task(
            self._title(), total=plan.epochs * plan.batches, completed=plan.done * plan.batches, told=""
        )
        self.bar.start()

    def batch(self, loss: float) -> None:
        """Move on by one."""
        self.bar.update(self.task, advance=1, told=" · ".join(filter(None, [f"loss {loss:.4f}", self.best])))

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        """Count the epoch and show the best one."""
        assert self.plan is not None
        self.at, self.best = epoch.epoch, " ".join(shown(best))
        self.bar.update(self.task, description=self._title(), completed=self.at * self.plan.batches)

    def stop(self) -> None:
        """Leave the last state on the screen."""
        self.bar.stop()

    def _title(self) -> str:
        assert self.plan is not None
        return f"epoch {min(self.at + 1, self.plan.epochs)}/{self.plan.epochs}"


def shown(best: Best | None) -> list[str]:
    """The best validation, in words."""
    return [] if best is None else [f"best {best.value:.4f} at epoch {best.epoch}"]
