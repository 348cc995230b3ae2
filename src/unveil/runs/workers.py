"""Jobs that can be done in any order, by processes of one thread each: no figure depends on the number of workers."""

import os
import signal
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from unveil.errors import UnveilError, UnveilWarning, unknown
from unveil.processes import ignoring_interrupts
from unveil.wording import exit_reason

Result = Mapping[str, Any]  # the result of a job: what JSON can hold
OnProgress = Callable[[float], None]  # called with the share of a job that is done, from 0 to 1

ENGINES = ("processes", "ray")
#: Libraries read these when they are loaded; a worker is a fresh interpreter and loads them anew.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


class Job(Protocol):
    """A piece of work. It is sent to other processes, so it is small and knows where to find what is large."""

    @property
    def key(self) -> str:
        """Its name, the same in every run: the name of the file that keeps its result."""

    @property
    def cost(self) -> float:
        """How long it takes, in any unit that all jobs share."""

    def run(self, on_progress: OnProgress) -> Result:
        """Do the work. The result depends on nothing but the job."""


@dataclass(frozen=True)
class Advanced:
    """A share of a job is done; 0: it has been started."""

    key: str
    share: float


@dataclass(frozen=True)
class Done:
    """A job is done; `notes` are shown beside it."""

    key: str
    result: Result
    seconds: float
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Failed:
    """A job could not be done: why, in a sentence, and the traceback."""

    key: str
    why: str
    detail: str = ""


Event = Advanced | Done | Failed


class Engine(Protocol):
    """Whatever does jobs. Closing the iterator stops all work at once."""

    @property
    def workers(self) -> int:
        """How many jobs are done at the same time."""

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """Do all jobs, in about the order given, and report events. Every job ends as `Done` or `Failed`."""


def engine(name: str, jobs: int | None = None, address: str | None = None) -> Engine:
    """Worker processes of this machine, by default one a core; or a Ray cluster, if there is one at the address."""
    if name == "ray":
        from unveil.runs.on_ray import OnRay, check_address

        check_address(address)
        return OnRay(address, jobs)
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if address is not None:
        hint = "Add --engine ray, or leave --address out."
        raise UnveilError("an address is for the engine 'ray'", where="--address", found=address, hint=hint)
    return Processes(jobs or cores())


def attempt(job: Job, send: Callable[[Advanced], Any]) -> Done | Failed:
    """The job's result, or why there is none; how far it has come is sent."""
    start = time.perf_counter()
    send(Advanced(job.key, 0.0))
    try:
        result = job.run(lambda share: send(Advanced(job.key, share)))
        return Done(job.key, result, time.perf_counter() - start)
    except UnveilError as error:
        return Failed(job.key, str(error))
    except MemoryError:
        return Failed(job.key, "there is not enough memory.")
    except Exception as error:
        return Failed(job.key, f"{type(error).__name__}: {error}.", traceback.format_exc())


class Inline:
    """One job after another in this process: for small grids and for debugging."""

    workers = 1

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        for job in jobs:
            yield Advanced(job.key, 0.0)
            yield attempt(job, lambda event: None)


def cores() -> int:
    """The processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Worker:
    """A process and our end of the pipe to it. One that has died is replaced when the next job begins."""

    job: Job | None = None

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = get_context("spawn")  # never a copy of this process: its threads and locks would not come along
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        before = {name: os.environ[name] for name in ONE_THREAD if name in os.environ}
        os.environ |= ONE_THREAD  # what is started inherits it
        try:
            with ignoring_interrupts():
                self.process.start()
        finally:
            for name in ONE_THREAD:
                del os.environ[name]
            os.environ |= before
        theirs.close()

    def begin(self, job: Job) -> None:
        if not self.process.is_alive():
            self.end()
            self.start()
        self.pipe.send(job)
        self.job = job

    def event(self) -> Event:
        """The next event; silence means that the process has died."""
        assert self.job is not None
        try:
            event: Event = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5.0)
            event = Failed(self.job.key, f"its process died ({exit_reason(self.process.exitcode)}).")
        if not isinstance(event, Advanced):
            self.job = None
        return event

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join(5.0)
        if self.process.is_alive():
            self.process.kill()


@dataclass(frozen=True)
class Processes:
    """Worker processes of this machine; each starts the next job when it is done with its last."""

    workers: int

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """All jobs. A worker that dies fails its job and is replaced."""
        left, workers = deque(jobs), [_Worker() for _ in range(min(self.workers, len(jobs)))]
        try:
            while left or any(worker.job for worker in workers):
                for worker in workers:
                    if left and worker.job is None:
                        worker.begin(left.popleft())
                for pipe in wait([worker.pipe for worker in workers if worker.job]):
                    yield next(worker for worker in workers if worker.pipe is pipe).event()
        finally:
            for worker in workers:
                worker.end()


def work(pipe: Connection) -> None:
    """The life of a worker: jobs in, events out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also where it could not be blocked
    warnings.simplefilter("ignore", UnveilWarning)  # whoever sent the jobs has seen it, once
    try:
        while True:
            job: Job = pipe.recv()
            pipe.send(attempt(job, pipe.send))
    except (EOFError, OSError):
        return
