"""Progress of long work, with the time left: one bar for the whole of it on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from unveil.runs.workers import Advanced, Done, Event, Failed, Job

#: No time left is named before this share of the work, or so many jobs' worth, is done: the start would be taken for
#: its pace.
_ENOUGH, _JOBS = 0.2, 4


def spell(seconds: float) -> str:
    """90 s, 12 min: up to two minutes in seconds."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@dataclass
class Watcher:
    """Is informed of how jobs go, and counts how much is done, by their costs; this one shows nothing."""

    cost: dict[str, float] = field(default_factory=dict, init=False)
    share: dict[str, float] = field(default_factory=dict, init=False)
    running: dict[str, None] = field(default_factory=dict, init=False)  # in the order of their beginning
    over: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    what: str = field(default="cells", init=False)
    begun: float = field(default_factory=time.monotonic, init=False)

    def start(self, left: Sequence[Job], total: int, what: str) -> None:
        """These jobs are to be done, of so many in all; `what` they are: cells, worlds."""
        self.cost = {job.key: job.cost for job in left}
        self.share, self.running = {}, {}
        self.total, self.over, self.what = total, total - len(left), what
        self.begun = time.monotonic()

    def event(self, event: Event) -> None:
        match event:
            case Advanced(key, share):
                self.share[key] = share
                self.running[key] = None
            case Done(key) | Failed(key):
                self.share[key] = 1.0
                self.running.pop(key, None)
                self.over += 1

    def stop(self) -> None:
        """The work is over, done or not."""

    @property
    def title(self) -> str:
        return f"{self.over}/{self.total} {self.what}"

    @property
    def done(self) -> float:
        """Σ cost · share over the jobs that were left when the work began."""
        return sum(self.cost[key] * share for key, share in self.share.items())

    @property
    def left(self) -> str:
        """The time left if the rest goes as what is done, by costs; nothing before enough is done to say."""
        passed, share = time.monotonic() - self.begun, self.done / sum(self.cost.values())
        return "" if share < min(_ENOUGH, _JOBS / len(self.cost)) else f"about {spell(passed / share - passed)} left"


Silent = Watcher


def job_watcher(console: Console | None = None, steps: int = 1) -> Watcher:
    """A live bar on a terminal, plain lines elsewhere: one for each job, or for each of the `steps` of a job."""
    console = console or Console(stderr=True)
    return Bar(console) if console.is_terminal else Lines(console, steps)


@dataclass
class Bar(Watcher):
    """One bar, with the last note of what is done, or else the jobs that are at work, and the time left."""

    console: Console
    note: str = ""

    def start(self, left: Sequence[Job], total: int, what: str) -> None:
        super().start(left, total, what)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"))
        times = (TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
        self.bar = Progress(*columns, *times, console=self.console, transient=True)
        self.task: TaskID = self.bar.add_task(self.title, total=sum(self.cost.values()), note="", left="")
        self.bar.start()

    def event(self, event: Event) -> None:
        super().event(event)
        if isinstance(event, Failed):
            self.bar.console.print(f"{event.key}: {event.why}", highlight=False, soft_wrap=True)
        if isinstance(event, Done) and event.notes:
            self.note = event.notes[-1]
        note = self.note or ", ".join(list(self.running)[:3])
        self.bar.update(self.task, description=self.title, completed=self.done, note=note, left=self.left)

    def stop(self) -> None:
        self.bar.stop()


@dataclass
class Lines(Watcher):
    """A plain line for each job that is over; of jobs that have `steps`, such as rounds, one for each of them."""

    console: Console
    steps: int = 1

    def event(self, event: Event) -> None:
        before = self.share.get(event.key, 0.0)
        super().event(event)
        if isinstance(event, Done):
            self._print(f"{self.title}: {event.key}", *event.notes, f"done in {spell(event.seconds)}")
        elif isinstance(event, Failed):
            self._print(f"{self.title}: {event.key}", f"failed: {event.why}")
        elif isinstance(event, Advanced) and self._step(before) < self._step(event.share) < self.steps:
            self._print(event.key, f"{self._step(event.share)} of {self.steps} rounds")

    def _print(self, *parts: str) -> None:
        times = ", ".join(filter(None, (spell(time.monotonic() - self.begun), self.left)))
        self.console.print(" · ".join([*parts, times]), soft_wrap=True, highlight=False)

    def _step(self, share: float) -> int:
        return int(share * self.steps + 1e-9)
