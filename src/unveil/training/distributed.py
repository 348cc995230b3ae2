"""Data-parallel training over torch.distributed, by processes that torchrun or another launcher starts.

Shapes: B rows, L columns, M slots.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist
from numpy.typing import NDArray
from safetensors.torch import load as from_bytes
from safetensors.torch import save as as_bytes
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from unveil.data.batches import Batch
from unveil.errors import UnveilError
from unveil.training.checkpoint import Checkpoint, differences
from unveil.training.device import pick_device

BUCKET = 2**22  # numbers sent at once, 16 MiB; a larger gradient is sent by itself, without a copy
TO_JOIN, TO_TAKE_PART = timedelta(minutes=5), timedelta(minutes=30)  # how long workers wait for one another
_LOOK_UP = timedelta(seconds=0.5)  # between two checks for signals while waiting
_PAUSE = 0.02  # seconds between two reads of the store
_CPU, _FAILURE = torch.device("cpu"), "failure"
_NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")
_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")

Value = TypeVar("Value")  # what JSON can hold


class WorkerLostError(UnveilError):
    """A worker ended before its work was done."""


@dataclass(frozen=True, eq=False)
class ProcessGroup:
    """The processes that train one model, joined by gloo (CPUs) or NCCL (GPUs): `rank` 0, …, `size` − 1.

    All call the same methods in the same order. In a group of one, the part is the whole batch, and sums are its own.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = _CPU  # where what is sent has to be
    lost: Callable[[Exception], WorkerLostError] = lambda error: WorkerLostError(str(error))  # why a worker is gone

    @property
    def is_leader(self) -> bool:
        return self.rank == 0

    def part(self, batch: Batch) -> Batch:
        """This process's share of the rows of a batch; it may have no slots."""
        return batch if self.size == 1 else part_of(batch, self.rank, self.size)

    def sum(self, *values: float) -> Sequence[float]:
        total: list[float] = self._sum(torch.tensor(values, dtype=torch.float64)).tolist()
        return total

    def sum_gradients(self, parameters: Sequence[Tensor], *values: float) -> Sequence[float]:
        """Sum the gradients over the group, in place, and return each value summed.

        A process without a gradient adds zeros; a parameter without one anywhere is left without. Which have one is
        sent with the values, while the gradients are: latency dominates a small step.
        """
        if self.size == 1:
            return values
        there = [float(parameter.grad is not None) for parameter in parameters]
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad.contiguous() for each in parameters]
        few = torch.tensor([*values, *there], dtype=torch.float64, device=self.device)
        with self._loss_explained():
            under_way = dist.all_reduce(few, async_op=True)
        for bucket in buckets(gradients):
            summed = self._sum(parameters_to_vector(bucket) if bucket[1:] else bucket[0].view(-1))
            vector_to_parameters(summed, bucket)
        with self._loss_explained():
            self._wait(under_way)
        total: list[float] = few.tolist()
        for parameter, gradient, count in zip(parameters, gradients, total[len(values) :], strict=True):
            parameter.grad = gradient if count else None
        return total[: len(values)]

    def broadcast(self, value: Value) -> Value:
        """The leader's value, by JSON, whatever the others pass."""
        if self.size == 1:
            return value
        received: Value = json.loads(self._send(json.dumps(value).encode()))
        return received

    def broadcast_state(self, state: Callable[[], Checkpoint]) -> Checkpoint | None:
        """The leader's state, to the others; None to the leader itself, which has it."""
        if self.size == 1:
            return None
        mine = state() if self.is_leader else Checkpoint({}, {})
        rest = self.broadcast(mine.state)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in mine.tensors.items()}
        packed = self._send(as_bytes(tensors) if self.is_leader else b"")
        return None if self.is_leader else Checkpoint(from_bytes(packed), rest)

    def check_same(self, mine: Mapping[str, Any]) -> None:
        """Raise if a process has other values than the first. All receive all, and so all raise."""
        if self.size == 1:
            return
        values = [json.loads(self._send(json.dumps(mine).encode(), rank)) for rank in range(self.size)]
        for rank, theirs in enumerate(values):
            for name, first, other in differences(values[0], theirs):
                raise UnveilError(
                    f"the workers do not agree: {name} is {first} for the first, and {other} for worker {rank + 1}",
                    hint="Give all workers the same log, settings and versions.",
                )

    def evaluates(self, nth: int) -> bool:
        """Whether this process evaluates the n-th batch of cases: in turn, as long histories stand together."""
        return nth % self.size == self.rank

    def sum_columns(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Sum columns over the group, in place and exactly: each process has zeros where another evaluated."""
        for column in columns.values() if self.size > 1 else ():
            column[...] = self._sum(torch.from_numpy(column)).cpu().numpy()

    def _sum(self, tensor: Tensor) -> Tensor:
        """The sum over the group, possibly in place."""
        if self.size > 1:
            tensor = tensor.to(self.device).contiguous()
            with self._loss_explained():
                self._wait(dist.all_reduce(tensor, async_op=True))
        return tensor

    def _send(self, message: bytes, source: int = 0) -> bytes:
        size = torch.tensor([len(message)], device=self.device)
        with self._loss_explained():
            self._wait(dist.broadcast(size, source, async_op=True))
            content = torch.empty(int(size), dtype=torch.uint8, device=self.device)
            if source == self.rank:
                content = torch.frombuffer(bytearray(message), dtype=torch.uint8).to(self.device)
            self._wait(dist.broadcast(content, source, async_op=True))
        return content.cpu().numpy().tobytes()

    @contextmanager
    def _loss_explained(self) -> Iterator[None]:
        """Any error of torch in a connection means that a worker is gone."""
        try:
            yield
        except RuntimeError as error:
            raise self.lost(error) from error

    def _wait(self, work: Any) -> None:
        """Until all have taken part; with NCCL the stream is in order, and nothing waits."""
        over = self.device.type == "cuda" and work.wait()
        while not over:
            try:
                over = work.wait(_LOOK_UP)
            except RuntimeError:  # it failed, or merely takes longer
                over = work.is_completed() and work.wait()


SINGLE = ProcessGroup()


def part_of(batch: Batch, rank: int, size: int) -> Batch:
    """Rows ⌊rB/N⌋ up to ⌊(r + 1)B/N⌋ of N ranks r, with their slots; rows keep their padding, for the same numbers."""
    rows = len(batch.token_BL)
    first, last = rows * rank // size, rows * (rank + 1) // size
    b_M, l_M = batch.where  # slots stand in the order of rows
    start, stop = torch.searchsorted(b_M.contiguous(), torch.tensor([first, last])).tolist()
    return Batch(batch.token_BL[first:last], batch.slots.part(start, stop), (b_M[start:stop] - first, l_M[start:stop]))


def buckets(tensors: Sequence[Tensor], most: int = BUCKET) -> Iterator[list[Tensor]]:
    """The tensors in order, in groups of at most `most` numbers, or of one that has more."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        if bucket and sum(each.numel() for each in bucket) + tensor.numel() > most:
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


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
        """By the environment variables of torchrun or another launcher; None without them."""
        if not all(name in os.environ for name in _TORCHRUN):
            return None
        try:
            rank, size, local, attempt = (int(os.environ.get(name, 0)) for name in _NUMBERS)
        except ValueError as error:
            raise UnveilError(f"{', '.join(_NUMBERS)} must be whole numbers ({error})") from None
        return cls(rank, size, "env://", local, attempt)


@contextmanager
def joined(place: Place, device: str = "auto") -> Iterator[ProcessGroup]:
    """The process group. The leader reports the error of any worker, which leaves a message: `WorkerLostError`."""
    if place.size == 1:
        yield SINGLE
        return
    home, store = _device(device, place), _store(place)
    _wait_for_all(store, place)
    backend = "nccl" if home.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.size, timeout=TO_TAKE_PART)
    try:
        yield ProcessGroup(place.rank, place.size, home, partial(_lost, store=store))
    except UnveilError as error:
        if place.rank and not isinstance(error, WorkerLostError):
            store.set(_FAILURE, f"worker {place.rank + 1}: {error}")
            raise WorkerLostError(str(error)) from error
        raise
    finally:
        dist.destroy_process_group()


def _device(device: str, place: Place) -> torch.device:
    """A worker's own GPU, or the CPU."""
    if pick_device(device).type != "cuda":
        return _CPU
    if torch.device("cuda" if device == "auto" else device).index is not None:
        raise UnveilError("workers have a GPU each", where="device", found=device, expected="auto, cuda or cpu")
    if place.local_rank >= torch.cuda.device_count():
        expected = f"at most {torch.cuda.device_count()}, one for each GPU; or the device cpu"
        raise UnveilError("more workers than GPUs", found=place.local_rank + 1, expected=expected)
    torch.cuda.set_device(place.local_rank)
    return torch.device("cuda", place.local_rank)


def _store(place: Place) -> Store:
    """Where the workers meet, with a prefix for each attempt of torchrun."""
    try:
        store: Store = next(rendezvous(place.address, place.rank, place.size, timeout=TO_JOIN))[0]
        return PrefixStore(f"attempt/{place.attempt}/{place.size}", store)
    except (RuntimeError, ValueError) as error:
        hint = "Check the address and port of the first worker, and that its machine can be reached."
        problem = f"worker {place.rank + 1} cannot join the others ({_first_line(error)})"
        raise UnveilError(problem, where=place.address, hint=hint) from error


def _wait_for_all(store: Store, place: Place) -> None:
    """In small steps, for signals; at most `TO_JOIN`."""
    store.set(f"joined/{place.rank}", "")
    until = time.monotonic() + TO_JOIN.total_seconds()
    while not store.check([f"joined/{rank}" for rank in range(place.size)]):
        if time.monotonic() > until:
            raise WorkerLostError(f"not all of the {place.size} workers joined within {TO_JOIN.seconds // 60} minutes")
        time.sleep(_PAUSE)


def _lost(error: Exception, store: Store) -> WorkerLostError:
    """Why a worker no longer answers: its own message, else torch's error."""
    with suppress(RuntimeError):  # the store ended with the leader
        if store.check([_FAILURE]):
            return WorkerLostError(store.get(_FAILURE).decode())
    return WorkerLostError("a worker was lost", found=_first_line(error))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
