"""Progress of training: a live bar on a terminal, a line per epoch elsewhere, or nothing."""

from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from unveil.training.checkpoint import Best, Epoch


@dataclass(frozen=True)
class Plan:
    """`epochs` of `batches`, the first `done` of them over already; `grace` epochs without a gain end them."""

    epochs: int
    batches: int
    done: int
    monitor: str
    grace: int | None = None

    def end(self, best: Best | None) -> int:
        """The last epoch, if nothing better than the best comes."""
        return self.epochs if best is None or self.grace is None else min(self.epochs, best.epoch + self.grace)


class Watcher:
    """Callbacks of training; this one shows nothing. The loss of `batch` is the mean of the epoch so far; an epoch is
    reported when it is validated and checkpointed; `stop` is called however training ends."""

    def start(self, plan: Plan) -> None: ...
    def batch(self, loss: float) -> None: ...
    def epoch(self, epoch: Epoch, best: Best | None) -> None: ...
    def stop(self) -> None: ...


Silent = Watcher


def watcher(console: Console | None = None) -> Watcher:
    """A live bar on a terminal, else plain lines."""
    console = console or Console(stderr=True)
    return Live(console) if console.is_terminal else Lines(console)


def shown(best: Best | None) -> str:
    """The best validation, in words."""
    return "" if best is None else f"best {best.value:.4f} at epoch {best.epoch}"


@dataclass
class Lines(Watcher):
    """One plain line per epoch."""

    console: Console
    plan: Plan = field(init=False)

    def start(self, plan: Plan) -> None:
        self.plan = plan

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        parts = [f"epoch {epoch.epoch}/{self.plan.epochs}", f"loss {epoch.loss:.4f}", f"{epoch.seconds:.1f} s"]
        if epoch.validation is not None:
            parts.append(f"validation {self.plan.monitor} {epoch.validation[self.plan.monitor]:.4f}")
        self.console.print(" · ".join(filter(None, [*parts, shown(best)])), soft_wrap=True, highlight=False)


@dataclass
class Live(Watcher):
    """A bar over the batches up to the end of the run, if validation improves no more, with loss and time left."""

    console: Console
    plan: Plan = field(init=False)
    bar: Progress = field(init=False)
    task: TaskID = field(init=False)
    best: str = ""

    def start(self, plan: Plan) -> None:
        self.plan = plan
        state = TextColumn("{task.fields[state]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), state, TimeRemainingColumn())
        self.bar = Progress(*columns, console=self.console)
        self.task = self.bar.add_task("", total=plan.epochs * plan.batches, state="")
        self._show(plan.done)
        self.bar.start()

    def batch(self, loss: float) -> None:
        self.bar.update(self.task, advance=1, state=" · ".join(filter(None, [f"loss {loss:.4f}", self.best])))

    def epoch(self, epoch: Epoch, best: Best | None) -> None:
        self.best = shown(best)
        self.bar.update(self.task, total=self.plan.end(best) * self.plan.batches)
        self._show(epoch.epoch)

    def stop(self) -> None:
        self.bar.stop()

    def _show(self, done: int) -> None:
        title = f"epoch {min(done + 1, self.plan.epochs)}/{self.plan.epochs}"
        self.bar.update(self.task, description=title, completed=done * self.plan.batches)
