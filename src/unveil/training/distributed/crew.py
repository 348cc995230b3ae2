"""Workers of one machine: started beside the process that leads them, and gone when it is."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import torch

from unveil.errors import UnveilError
from unveil.signals import deaf
from unveil.training.device import pick_device
from unveil.training.distributed.join import Place
from unveil.training.distributed.shelf import Ticket, tickets
from unveil.training.distributed.team import WorkerLostError
from unveil.wording import cause_of_death

Order = TypeVar("Order")

#: How a worker ends that lost its team: its end is a consequence, not a cause.
_LOST_ITS_TEAM = 3
_TO_GO, _TO_DIE = 10.0, 2.0


@dataclass(frozen=True, eq=False)
class LocalCrew:
    """The workers that this process started, ranks 1, 2, …"""

    processes: list[BaseProcess]

    def dead(self) -> str | None:
        """The first worker that died by itself."""
        for rank, process in enumerate(self.processes, start=1):
            if process.exitcode not in (None, 0, _LOST_ITS_TEAM):
                return f"worker {rank + 1} of {len(self.processes) + 1} died ({cause_of_death(process.exitcode)})"
        return None

    def dismiss(self) -> None:
        """Kill them: they hold nothing that could be lost."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join(_TO_DIE)

    def go(self) -> None:
        """Let them end by themselves, but not forever."""
        until = time.monotonic() + _TO_GO
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))


@contextmanager
def crew(size: int, work: Callable[[Order, Place], object], order: Order) -> Iterator[tuple[Place, LocalCrew]]:
    """Start `size` − 1 workers that do `work(order, place)`, and give the leader's place, which is this process's."""
    with TemporaryDirectory(prefix="unveil-") as folder:
        address = (Path(folder) / "meeting").as_uri()
        shared: Sequence[Ticket | None] = tickets(size, Path(folder)) or [None] * size
        places = [Place(rank, size, address, rank, ticket=ticket) for rank, ticket in enumerate(shared)]
        context = get_context("spawn")  # a fork would take torch's threads' locks along, but not the threads
        started = LocalCrew([])
        try:
            for place in places[1:]:
                process = context.Process(target=_live, args=(work, order, place), daemon=True)
                with deaf():
                    process.start()
                started.processes.append(process)
                _hang_up(place.ticket)
            yield places[0], started
            started.go()
        finally:
            started.dismiss()


def _hang_up(ticket: Ticket | None) -> None:
    """The process that has it now is the only one that can: its end is heard at the other end of the line."""
    for line in ticket.lines if ticket else ():
        line.close()


def refuse_too_many(workers: int, device: str = "auto") -> None:
    """Workers that share a core or a GPU only wait for one another."""
    if workers < 1:
        raise UnveilError("out of range", where="workers", found=workers, expected="at least 1")
    gpus = pick_device(device).type == "cuda"
    most, what = (torch.cuda.device_count(), "GPUs") if gpus else (cores(), "cores")
    if workers > most:
        hint = "Workers on other machines are started by torchrun."
        raise UnveilError(f"more workers than {what}", found=workers, expected=f"at most {most}", hint=hint)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _live(work: Callable[[Order, Place], object], order: Order, place: Place) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # also where it could not be blocked
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        work(order, place)
    except WorkerLostError:
        sys.exit(_LOST_ITS_TEAM)


def _die_with_parent() -> None:
    """However the leader ends, nobody is left behind."""
    leader = parent_process()
    assert leader is not None
    wait([leader.sentinel])
    os._exit(_LOST_ITS_TEAM)
