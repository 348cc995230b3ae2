"""Meeting: from a place in a team to the team, and what becomes of it when one of them ends."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, Self
from uuid import uuid4

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from unveil.errors import UnveilError
from unveil.training.device import pick_device
from unveil.training.distributed.group import Group
from unveil.training.distributed.neighbours import Neighbours
from unveil.training.distributed.shelf import Shelf, Ticket
from unveil.training.distributed.team import SOLO, Team, WorkerLostError

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
