"""Joining a process group: by torchrun or another launcher, or with workers that this process starts on its machine."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.multiprocessing.spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, start_processes

from unveil.errors import UnveilError
from unveil.processes import deaf
from unveil.training.device import pick_device
from unveil.training.process_group import SINGLE, ProcessGroup, TorchProcessGroup, WorkerLostError
from unveil.wording import cause_of_death

Task = TypeVar("Task")

#: How long workers wait for one another: to join, and to take part in a sum.
TO_JOIN, TO_TAKE_PART = timedelta(minutes=5), timedelta(minutes=30)
#: Seconds between two looks, until a dead worker is found dead, and until workers have ended by themselves.
_LOOK_UP, _TO_DIE, _TO_END = 0.02, 3.0, 10.0
_FAILURE = "failure"
_NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")
_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Place:
    """The rank of one process in a group, and where the group meets."""

    rank: int
    size: int
    address: str  # file:///path of one machine, tcp://host:port of the leader, or env:// as torchrun sets it
    local_rank: int = 0  # among the workers of one machine: its GPU
    attempt: int = 0  # how often torchrun has started the workers again, after one was lost

    @classmethod
    def of_environment(cls) -> Self | None:
        """The place that torchrun, or who else sets its variables, has given this process; None: nobody has."""
        if not all(name in os.environ for name in _TORCHRUN):
            return None
        try:
            rank, size, local, attempt = (int(os.environ.get(name, 0)) for name in _NUMBERS)
        except ValueError as error:
            raise UnveilError(f"{', '.join(_NUMBERS)} must be whole numbers ({error})") from None
        return cls(rank, size, "env://", local, attempt)


class Workers:
    """Workers that somebody else started: nothing is known of them."""

    def failure(self) -> str | None:
        """Which worker died, and how; None: none has, as far as is known."""
        return None

    def kill(self) -> None:
        """End all workers at once; those of others notice by themselves."""


@dataclass(frozen=True, eq=False)
class LocalWorkers(Workers):
    """The workers that this process started, ranks 1, 2, …"""

    context: ProcessContext

    def failure(self) -> str | None:
        """The first worker that died by itself."""
        try:
            self.context.join(timeout=0)
        except ProcessExitedException as error:
            code = self.context.processes[error.error_index].exitcode
            size = len(self.context.processes) + 1
            return f"worker {error.error_index + 2} of {size} died ({cause_of_death(code)})"
        except ProcessRaisedException as error:
            return f"worker {error.error_index + 2} failed: {str(error).strip().splitlines()[-1]}"
        return None

    def kill(self) -> None:
        """They hold nothing that could be lost."""
        for process in self.context.processes:
            process.kill()
        for process in self.context.processes:
            process.join(_TO_DIE)


@contextmanager
def local_workers(size: int, work: Callable[[Task, Place], object], task: Task) -> Iterator[tuple[Place, LocalWorkers]]:
    """Start `size` − 1 processes that call `work(task, place)`, and give this process's place, the leader's."""
    with TemporaryDirectory(prefix="unveil-") as folder:
        address = (Path(folder) / "store").as_uri()
        arguments = (work, task, size, address)
        # A fork would copy the locks of torch's threads, but not the threads.
        with deaf():
            context = start_processes(  # type: ignore[no-untyped-call]
                _work, arguments, size - 1, join=False, daemon=True, start_method="spawn"
            )
        workers = LocalWorkers(context)
        try:
            yield Place(0, size, address), workers
            context.join(timeout=_TO_END)
        finally:
            workers.kill()


def _work(index: int, work: Callable[[Any, Place], object], task: Any, size: int, address: str) -> None:
    """Torch interrupts this process when the one that started it ends. A lost group is a consequence, not a cause."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        work(task, Place(index + 1, size, address, index + 1))
    except WorkerLostError:
        return


@contextmanager
def joined(place: Place, device: str = "auto", workers: Workers | None = None) -> Iterator[ProcessGroup]:
    """The process group, for as long as all of it lives. A place among one is a group of one.

    What goes wrong for one is reported by the leader: other workers leave a message and end with `WorkerLostError`.
    """
    if place.size == 1:
        yield SINGLE
        return
    workers, home = workers or Workers(), _device(device, place)
    store = _store(place)
    _wait_for_all(store, place, workers)
    backend = "nccl" if home.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.size, timeout=TO_TAKE_PART)
    try:
        with _failure_reported(store, place):
            group = {"rank": place.rank, "size": place.size}
            yield TorchProcessGroup(**group, device=home, lost=lambda error: _lost(error, store, workers))
    except BaseException:
        workers.kill()  # what is still being sent to them must come to an end before the group can
        raise
    finally:
        dist.destroy_process_group()


def _device(device: str, place: Place) -> torch.device:
    """Where a worker sends from: its own GPU, or the CPU."""
    if pick_device(device).type != "cuda":
        return torch.device("cpu")
    if torch.device("cuda" if device == "auto" else device).index is not None:
        raise UnveilError("workers have a GPU each", where="device", found=device, expected="auto, cuda or cpu")
    if place.local_rank >= torch.cuda.device_count():
        expected = f"at most {torch.cuda.device_count()}, one for each GPU; or the device cpu"
        raise UnveilError("more workers than GPUs", found=place.local_rank + 1, expected=expected)
    torch.cuda.set_device(place.local_rank)
    return torch.device("cuda", place.local_rank)


def _store(place: Place) -> Store:
    """Where the workers meet; those that torchrun starts again would else find what those before them left there."""
    try:
        store: Store = next(rendezvous(place.address, place.rank, place.size, timeout=TO_JOIN))[0]
        return PrefixStore(f"attempt/{place.attempt}/{place.size}", store)
    except (RuntimeError, ValueError) as error:
        hint = "Check the address and port of the first worker, and that its machine can be reached."
        problem = f"worker {place.rank + 1} cannot join the others ({_first_line(error)})"
        raise UnveilError(problem, where=place.address, hint=hint) from error


def _wait_for_all(store: Store, place: Place, workers: Workers) -> None:
    """In small steps, so that signals are heard and the death of a worker is noticed; not forever."""
    store.set(f"joined/{place.rank}", "")
    until = time.monotonic() + TO_JOIN.total_seconds()
    while not store.check([f"joined/{rank}" for rank in range(place.size)]):
        if found := workers.failure():
            raise WorkerLostError(found)
        if time.monotonic() > until:
            raise WorkerLostError(f"not all of the {place.size} workers joined within {TO_JOIN.seconds // 60} minutes")
        time.sleep(_LOOK_UP)


@contextmanager
def _failure_reported(store: Store, place: Place) -> Iterator[None]:
    """A worker that is not the leader leaves its message for it."""
    try:
        yield
    except WorkerLostError:
        raise
    except UnveilError as error:
        if place.rank == 0:
            raise
        store.set(_FAILURE, f"worker {place.rank + 1}: {error}")
        raise WorkerLostError(str(error)) from error


def _lost(error: Exception, store: Store, workers: Workers) -> WorkerLostError:
    """Why a worker no longer answers: by its own message, else by how it died, else by what torch says of it."""
    until = time.monotonic() + (_TO_DIE if isinstance(workers, LocalWorkers) else 0.0)
    while not (found := _message(store) or workers.failure()):
        if time.monotonic() >= until:
            return WorkerLostError("a worker was lost", found=_first_line(error))
        time.sleep(_LOOK_UP)
    return WorkerLostError(found)


def _message(store: Store) -> str | None:
    try:
        return store.get(_FAILURE).decode() if store.check([_FAILURE]) else None
    except RuntimeError:  # the store ended with the leader
        return None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
