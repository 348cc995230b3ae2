"""The engine of one machine: worker processes of one thread each, so that results do not depend on their number."""

import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import cast

from unveil.experiment.grid.attempt import attempt
from unveil.experiment.grid.job import Advanced, Begun, Done, Event, Failed, Job, Tell
from unveil.experiment.grid.threads import ONE_THREAD
from unveil.signals import deaf
from unveil.wording import cause_of_death

_SECONDS_TO_DIE = 5.0


def cores() -> int:
    """The processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@dataclass(eq=False)
class _Worker:
    """A process and our end of the line to it."""

    process: BaseProcess
    line: Connection
    job: Job | None = None

    @classmethod
    def start(cls) -> "_Worker":
        context = get_context("spawn")  # never a copy of this process: its threads and locks would not come along
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs,), daemon=True)
        with _environment(ONE_THREAD), deaf():
            process.start()
        theirs.close()
        return cls(process, ours)

    def take(self, job: Job) -> Event:
        self.line.send(job)
        self.job = job
        return Begun(job.key)

    def end(self) -> None:
        self.line.close()
        self.process.terminate()
        self.process.join(_SECONDS_TO_DIE)
        if self.process.is_alive():
            self.process.kill()


@dataclass(frozen=True)
class Processes:
    """`count` workers; each takes the next job when it is done with its last."""

    count: int

    def workers(self) -> int:
        """As many as were asked for."""
        return self.count

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """All jobs. A worker that dies fails its job and is replaced."""
        left, workers = deque(jobs), [_Worker.start() for _ in range(min(self.count, len(jobs)))]
        try:
            for worker in workers:
                yield worker.take(left.popleft())
            while busy := {worker.line: worker for worker in workers if worker.job is not None}:
                for line in wait(list(busy)):
                    yield from self._heard(busy[cast(Connection, line)], left, workers)
        finally:
            for worker in workers:
                worker.end()

    def _heard(self, worker: _Worker, left: deque[Job], workers: list[_Worker]) -> Iterator[Event]:
        event = _said(worker)
        yield event
        if isinstance(event, Done | Failed):
            worker.job = None
            if left:
                yield _alive(worker, workers).take(left.popleft())


def _alive(worker: _Worker, workers: list[_Worker]) -> _Worker:
    """The worker, or its successor."""
    if not worker.process.is_alive():
        workers.remove(worker)
        worker.end()
        worker = _Worker.start()
        workers.append(worker)
    return worker


def _said(worker: _Worker) -> Event:
    """The next event from a worker; its silence is its death."""
    assert worker.job is not None
    try:
        event: Event = worker.line.recv()
        return event
    except (EOFError, OSError):
        worker.process.join(_SECONDS_TO_DIE)
        return Failed(worker.job.key, f"its process died ({cause_of_death(worker.process.exitcode)}).")


def work(line: Connection) -> None:
    """The life of a worker: jobs in, events out, until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also where it could not be blocked
    try:
        while True:
            job: Job = line.recv()
            line.send(attempt(job, _telling(line, job.key)))
    except (EOFError, OSError):
        return


def _telling(line: Connection, key: str) -> Tell:
    return lambda share: line.send(Advanced(key, share))


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set for a while: what is started inside inherits it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
