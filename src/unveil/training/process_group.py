"""The processes that train one model together, over torch.distributed; one process by itself is a group of one.

Shapes: B rows, L columns, M slots.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from numpy.typing import NDArray
from safetensors.torch import load as from_bytes
from safetensors.torch import save as as_bytes
from torch import Tensor

from unveil.data.batches import Batch
from unveil.errors import UnveilError
from unveil.training.checkpoint import Checkpoint, differences

#: Numbers sent at once. A gradient of more goes by itself, without a copy: 16 MiB.
BUCKET = 2**22
#: While it waits for others, a process looks up this often: a signal is heard even if a worker hangs.
_LOOK_UP = timedelta(seconds=0.5)

#: What JSON can hold.
Value = TypeVar("Value")


class WorkerLostError(UnveilError):
    """A worker ended before its work was done, and with it the group."""


@dataclass(frozen=True, eq=False)
class ProcessGroup:
    """The processes that train one model: `rank` 0, …, `size` − 1. All call the same methods in the same order.

    By itself this is a group of one: its part is the whole batch, its sums are what it has.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this process is rank 0, the one that writes, reports and decides."""
        return self.rank == 0

    def part(self, batch: Batch) -> Batch:
        """This process's share of a batch; it may have no slots."""
        return batch

    def sum(self, *values: float) -> Sequence[float]:
        """Each value, summed over the group."""
        return values

    def sum_gradients(self, parameters: Sequence[Tensor], *values: float) -> Sequence[float]:
        """Sum the gradients over the group, in place, and give each value summed.

        A parameter without a gradient anywhere is left without.
        """
        return values

    def broadcast(self, value: Value) -> Value:
        """The leader's value, whatever the others pass."""
        return value

    def broadcast_state(self, state: Callable[[], Checkpoint]) -> Checkpoint | None:
        """The leader's state, to the others; None to the leader itself, which has it."""
        return None

    def check_same(self, mine: Mapping[str, Any]) -> None:
        """Raise where some processes have other values than the first."""

    def evaluates(self, nth: int) -> bool:
        """Whether this process evaluates the n-th batch of cases."""
        return True

    def sum_columns(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Sum columns over the group, in place: each process has zeros where another evaluated."""


SINGLE = ProcessGroup()


def part_of(batch: Batch, rank: int, size: int) -> Batch:
    """Rows ⌊rB/N⌋ up to ⌊(r + 1)B/N⌋ with their slots: the parts of all ranks r < N make up the batch.

    Rows keep their padding, so that a row is computed as it is in the whole batch.
    """
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


@dataclass(frozen=True, eq=False, kw_only=True)
class TorchProcessGroup(ProcessGroup):
    """Processes joined by gloo (CPUs) or NCCL (GPUs). `lost` finds out what became of a worker that is gone."""

    device: torch.device  # where what is sent has to be
    lost: Callable[[Exception], WorkerLostError]

    def part(self, batch: Batch) -> Batch:
        """A contiguous share of the rows."""
        return part_of(batch, self.rank, self.size)

    def sum(self, *values: float) -> Sequence[float]:
        """In double precision."""
        total: list[float] = self._sum(torch.tensor(values, dtype=torch.float64)).tolist()
        return total

    def sum_gradients(self, parameters: Sequence[Tensor], *values: float) -> Sequence[float]:
        """A process whose share has no slots formed no gradients: it adds zeros. Who has one goes with the values.

        These few numbers are under way while the gradients are: in a small step it is the waiting that takes long.
        """
        there = [float(parameter.grad is not None) for parameter in parameters]
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad.contiguous() for each in parameters]
        few = torch.tensor([*values, *there], dtype=torch.float64, device=self.device)
        finish = self._start(lambda: dist.all_reduce(few, async_op=True))
        for bucket in buckets(gradients):
            self._sum_bucket(bucket)
        finish()
        total: list[float] = few.tolist()
        for parameter, gradient, count in zip(parameters, gradients, total[len(values) :], strict=True):
            parameter.grad = gradient if count else None
        return total[: len(values)]

    def _sum_bucket(self, bucket: Sequence[Tensor]) -> None:
        total = self._sum(torch.cat([tensor.reshape(-1) for tensor in bucket]) if bucket[1:] else bucket[0])
        if total is bucket[0]:  # summed in place
            return
        parts = total.view(-1).split_with_sizes([tensor.numel() for tensor in bucket])
        for tensor, part in zip(bucket, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))

    def broadcast(self, value: Value) -> Value:
        """By JSON."""
        received: Value = json.loads(self._send(json.dumps(value).encode()))
        return received

    def broadcast_state(self, state: Callable[[], Checkpoint]) -> Checkpoint | None:
        """Tensors as safetensors, the rest as JSON."""
        mine = state() if self.is_leader else Checkpoint({}, {})
        rest = self.broadcast(mine.state)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in mine.tensors.items()}
        packed = self._send(as_bytes(tensors) if self.is_leader else b"")
        return None if self.is_leader else Checkpoint(from_bytes(packed), rest)

    def check_same(self, mine: Mapping[str, Any]) -> None:
        """All receive all, so that all come to the same verdict."""
        values = [json.loads(self._send(json.dumps(mine).encode(), rank)) for rank in range(self.size)]
        for rank, theirs in enumerate(values):
            for name, first, other in differences(values[0], theirs):
                raise UnveilError(
                    f"the workers do not agree: {name} is {first} for the first, and {other} for worker {rank + 1}",
                    hint="Give all workers the same log, settings and versions.",
                )

    def evaluates(self, nth: int) -> bool:
        """In turn: batches of long histories, which stand together, are spread."""
        return nth % self.size == self.rank

    def sum_columns(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Exact: x + 0 = x."""
        for column in columns.values():
            column[...] = self._sum(torch.from_numpy(column)).cpu().numpy()

    def _sum(self, tensor: Tensor) -> Tensor:
        """The sum over the group, on the device where it was formed; it may be written over the tensor."""
        tensor = tensor.to(self.device).contiguous()
        self._start(lambda: dist.all_reduce(tensor, async_op=True))()
        return tensor

    def _send(self, message: bytes, source: int = 0) -> bytes:
        """The message of one process, to all."""
        size = torch.tensor([len(message)], device=self.device)
        self._start(lambda: dist.broadcast(size, source, async_op=True))()
        content = torch.empty(int(size), dtype=torch.uint8, device=self.device)
        if source == self.rank:
            content = torch.frombuffer(bytearray(message), dtype=torch.uint8).to(self.device)
        self._start(lambda: dist.broadcast(content, source, async_op=True))()
        return content.cpu().numpy().tobytes()

    def _start(self, start: Callable[[], Any]) -> Callable[[], None]:
        """Start an operation; the answer waits until all have taken part."""
        with self._loss_explained():
            work = start()

        def finish() -> None:
            with self._loss_explained():
                while not self._is_done(work):
                    pass

        return finish

    @contextmanager
    def _loss_explained(self) -> Iterator[None]:
        """Whatever torch says of a connection means that a worker is gone."""
        try:
            yield
        except RuntimeError as error:
            raise self.lost(error) from error

    def _is_done(self, work: Any) -> bool:
        if self.device.type == "cuda":  # NCCL works in the order of the stream; nothing is waited for here
            return bool(work.wait())
        try:
            return bool(work.wait(_LOOK_UP))
        except RuntimeError:  # it failed, or merely takes longer
            return bool(work.wait()) if work.is_completed() else False
