"""Joining a process group, and the worker processes of one machine."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from multiprocessing import Pipe, get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, Self, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from unveil.errors import UnveilError
from unveil.processes import deaf
from unveil.training.device import pick_device
from unveil.training.process_group import SOLO, Group, Team, WorkerLostError
from unveil.wording import cause_of_death

#: Bytes that a worker lays down at a time: what is larger is added up in several layers.
ROOM = 2**22
#: Who lays down the next layer may find another still reading the last one: they take turns.
_TURNS = 2
#: Every tensor begins on a cache line of its own.
_LINE = 64

#: Numbers of a tensor and their type, for each tensor of a layer.
Form: TypeAlias = tuple[tuple[int, torch.dtype], ...]


@dataclass(frozen=True, eq=False)
class Ticket:
    """What a worker needs to come to the shelf; it can be sent to the process that is to be one."""

    file: Path
    rank: int
    size: int
    lines: Sequence[Connection]  # one, to the leader; the leader has one to each of the others


class Shelf:
    """One worker's side of the shelf. All workers add up tensors of the same form, in the same order."""

    def __init__(self, ticket: Ticket, room: int = ROOM) -> None:
        self.rank, self.size, self.room, self._lines = ticket.rank, ticket.size, room, ticket.lines
        self._memory = np.memmap(ticket.file, np.uint8, "r+", shape=(_TURNS, self.size, room))
        self._turn = 0
        self._places = lru_cache(maxsize=1024)(self._find_places)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Sum each over the workers, where it stands: in the order of ranks, so that all find the same bits."""
        for layer in layers(tensors, self.room):
            form = tuple((tensor.numel(), tensor.dtype) for tensor in layer)
            lying = [self._places(self._turn, rank, form) for rank in range(self.size)]
            for place, tensor in zip(lying[self.rank], layer, strict=True):
                place.copy_(tensor)
            self._meet()
            for tensor, first, second, *others in zip(layer, *lying, strict=True):
                torch.add(first, second, out=tensor)
                for other in others:
                    tensor.add_(other)
            self._turn = (self._turn + 1) % _TURNS

    def _find_places(self, turn: int, rank: int, form: Form) -> list[Tensor]:
        """Where a worker lays tensors of this form."""
        room, start, places = torch.from_numpy(self._memory[turn, rank]), 0, []
        for count, dtype in form:
            places.append(room[start : start + count * dtype.itemsize].view(dtype))
            start += _taken(count * dtype.itemsize)
        return places

    def _meet(self) -> None:
        """Go on when all have come. A worker that is gone has hung up, which is an error here."""
        if self.rank:
            self._lines[0].send_bytes(b"")
            self._lines[0].recv_bytes()
            return
        for line in self._lines:
            line.recv_bytes()
        for line in self._lines:
            line.send_bytes(b"")


def layers(tensors: Sequence[Tensor], room: int = ROOM) -> Iterator[list[Tensor]]:
    """The numbers of contiguous tensors in order, as views of what a worker can lay down at a time."""
    layer: list[Tensor] = []
    taken = 0
    for tensor in tensors:
        for piece in torch.split(tensor.view(-1), room // tensor.dtype.itemsize):
            size = _taken(piece.numel() * piece.dtype.itemsize)
            if layer and taken + size > room:
                yield layer
                layer, taken = [], 0
            layer.append(piece)
            taken += size
    if layer:
        yield layer


def tickets(size: int, folder: Path, room: int = ROOM) -> list[Ticket] | None:
    """For `size` workers of this machine, the leader's first; None where the folder has no room for a shelf."""
    file = folder / "shelf"
    if not _made(file, _TURNS * size * room):
        return None
    pipes = [Pipe() for _ in range(1, size)]
    leader = Ticket(file, 0, size, [mine for mine, _ in pipes])
    return [leader, *(Ticket(file, rank, size, [theirs]) for rank, (_, theirs) in enumerate(pipes, start=1))]


def _made(file: Path, size: int) -> bool:
    """Whether the disk has so much room: without it, memory could not be touched where the file has holes."""
    try:
        with file.open("wb") as opened:
            opened.truncate(size)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(opened.fileno(), 0, size)
    except OSError:
        with suppress(OSError):
            file.unlink()
        return False
    return True


def _taken(size: int) -> int:
    """Bytes up to the next cache line."""
    return -(-size // _LINE) * _LINE


@dataclass(frozen=True, eq=False, kw_only=True)
class Neighbours(Group):
    """Processes that share memory."""

    shelf: Shelf

    def _sum_all(self, few: Tensor, gradients: Sequence[Tensor]) -> None:
        self._told_of_loss(lambda: self.shelf.add_up([few, *gradients]))

    def _started(self, tensor: Tensor) -> Callable[[], None]:
        """Done at once: nobody waits for anything but the others."""
        self._told_of_loss(lambda: self.shelf.add_up([tensor]))
        return lambda: None


#: How long workers wait for one another: to come, and to take part.
TO_COME, TO_TAKE_PART = timedelta(minutes=5), timedelta(minutes=30)
_LOOK_UP, _TO_BE_FOUND_DEAD = 0.02, 3.0
_FAILURE = "failure"
_NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")
_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Place:
    """Where one process stands in a team, and where the team meets."""

    rank: int
    size: int
    address: str  # file:///path of one machine, tcp://host:port of the leader, or env:// as torchrun sets it
    local_rank: int = 0  # among the workers of one machine: its GPU
    again: bool = False  # started once more, after a worker was lost
    ticket: Ticket | None = None  # to memory that the whole team shares

    @classmethod
    def of_environment(cls) -> Self | None:
        """The place that torchrun, or who else sets its variables, has given this process; None: nobody has."""
        if not all(name in os.environ for name in _TORCHRUN):
            return None
        try:
            rank, size, local, restarts = (int(os.environ.get(name, 0)) for name in _NUMBERS)
        except ValueError as error:
            raise UnveilError(f"{', '.join(_NUMBERS)} must be whole numbers ({error})") from None
        return cls(rank, size, "env://", local, restarts > 0)


class Crew(Protocol):
    """Those who started the other workers know when one of them has ended, and can send them home."""

    def dead(self) -> str | None:
        """Which worker died, and how; None: none has."""

    def dismiss(self) -> None:
        """End all workers at once."""


class Strangers:
    """Workers that somebody else started."""

    def dead(self) -> str | None:
        """Nobody knows."""
        return None

    def dismiss(self) -> None:
        """They notice by themselves."""


@contextmanager
def joined(place: Place, device: str = "auto", crew: Crew | None = None) -> Iterator[Team]:
    """The team, for as long as all of it lives. A place among one is a team of one.

    What goes wrong for one is told by the leader: other workers leave word of it and end with `WorkerLostError`.
    """
    if place.size == 1:
        yield SOLO
        return
    crew = crew or Strangers()
    home = _home(device, place)
    store = _met(_meeting_point(place), place, crew)
    backend = "nccl" if home.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.size, timeout=TO_TAKE_PART)
    try:
        with _accounted_for(store, place):
            yield _team(place, home, lambda error: _lost(error, store, crew))
    except BaseException:
        crew.dismiss()  # what is still being sent to them must come to an end before the group can
        raise
    finally:
        dist.destroy_process_group()


def _team(place: Place, home: torch.device, lost: Callable[[Exception], WorkerLostError]) -> Team:
    """GPUs have memory of their own."""
    if place.ticket is None or home.type == "cuda":
        return Group(rank=place.rank, size=place.size, device=home, lost=lost)
    return Neighbours(rank=place.rank, size=place.size, device=home, lost=lost, shelf=Shelf(place.ticket))


def _home(device: str, place: Place) -> torch.device:
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


def _meeting_point(place: Place) -> Store:
    try:
        store: Store = next(rendezvous(place.address, place.rank, place.size, timeout=TO_COME))[0]
        return store
    except (RuntimeError, ValueError) as error:
        hint = "Check the address and port of the first worker, and that its machine can be reached."
        problem = f"worker {place.rank + 1} cannot join the others ({_first_line(error)})"
        raise UnveilError(problem, where=place.address, hint=hint) from error


def _met(store: Store, place: Place, crew: Crew) -> Store:
    """A corner of the meeting point for this team alone, once all are in it.

    Workers that torchrun starts again meet where those before them met, and find what those have left. So each brings
    a name nobody had before; the leader names the corner, and tells it to whoever has come, by their names.
    """
    mine = uuid4().hex
    store.set(f"came/{place.rank}", mine)
    look = _Patience(crew, place.size).look
    if place.rank > 0:
        while not store.check([f"corner/{mine}"]):
            look()
    corner = mine if place.rank == 0 else store.get(f"corner/{mine}").decode()
    team = PrefixStore(corner, store)
    team.set(f"here/{place.rank}", "")
    while not team.check([f"here/{rank}" for rank in range(place.size)]):
        if place.rank == 0:
            _tell(store, corner, place.size)
        look()
    return team


def _tell(store: Store, corner: str, size: int) -> None:
    for rank in range(1, size):
        if store.check([f"came/{rank}"]):
            store.set(f"corner/{store.get(f'came/{rank}').decode()}", corner)


class _Patience:
    """Waits in small steps, so that signals are heard and the death of a worker is noticed; not forever."""

    def __init__(self, crew: Crew, size: int) -> None:
        self.crew, self.size, self.until = crew, size, time.monotonic() + TO_COME.total_seconds()

    def look(self) -> None:
        """Up, and wait a little."""
        if found := self.crew.dead():
            raise WorkerLostError(found)
        if time.monotonic() > self.until:
            raise WorkerLostError(f"not all of the {self.size} workers came within {TO_COME.seconds // 60} minutes")
        time.sleep(_LOOK_UP)


@contextmanager
def _accounted_for(store: Store, place: Place) -> Iterator[None]:
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


def _lost(error: Exception, store: Store, crew: Crew) -> WorkerLostError:
    """Why a worker no longer answers: by its own word, else by how it died, else by what torch says of it."""
    until = time.monotonic() + _TO_BE_FOUND_DEAD
    while not (found := _word(store) or crew.dead()):
        if isinstance(crew, Strangers) or time.monotonic() > until:
            return WorkerLostError("a worker was lost", found=_first_line(error))
        time.sleep(_LOOK_UP)
    return WorkerLostError(found)


def _word(store: Store) -> str | None:
    try:
        return store.get(_FAILURE).decode() if store.check([_FAILURE]) else None
    except RuntimeError:  # the meeting point went with the leader
        return None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


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
