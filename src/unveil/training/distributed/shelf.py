"""Memory that the workers of one machine share: each lays its numbers on a shelf, and all add up what lies there.

To send numbers from process to process takes longer than to read what another has written. Only that all have come is
said, over a line between the leader and each of the others.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

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
