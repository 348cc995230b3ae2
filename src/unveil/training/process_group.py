"""The processes that train one model together, over torch.distributed; one process by itself is a group of one.

Shapes: B rows, L columns, M slots.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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


def part_of(batch: Batch, rank: int, size: int) -> Batch:
    """Rows ⌊rB/N⌋ up to ⌊(r + 1)B/N⌋ with their slots: the parts of all ranks r < N make up the batch.

    Rows keep their padding, so that a row is computed as it is in the whole batch.
    """
    rows = len(batch.token_BL)
    first, last = rows * rank // size, rows * (rank + 1) // size
    b_M, l_M = batch.where
    start, stop = torch.searchsorted(
        b_M.contiguous(), torch.tensor([first, last])
    ).tolist()  # slots stand in the order of rows
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


#: What JSON can hold.
Word = TypeVar("Word")


class WorkerLostError(UnveilError):
    """A worker ended before its work was done, and with it the team."""


@dataclass(frozen=True, eq=False)
class Team:
    """The processes that train one model: `rank` 0, …, `size` − 1. All call the same methods in the same order.

    By itself this is a team of one: its part is the whole, its sums are what it has, and it agrees with itself.
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes, tells and decides."""
        return self.rank == 0

    def part(self, batch: Batch) -> Batch:
        """This process's share of a batch; it may have no slots."""
        return batch

    def sum(self, *values: float) -> Sequence[float]:
        """Each value, summed over the team."""
        return values

    def add_up(self, parameters: Sequence[Tensor], *values: float) -> Sequence[float]:
        """Sum the gradients over the team, in place, and give each value summed.

        A parameter without a gradient anywhere is left without.
        """
        return values

    def told(self, word: Word) -> Word:
        """What the leader says; what others say does not count."""
        return word

    def hear(self, say: Callable[[], Checkpoint]) -> Checkpoint | None:
        """What the leader says, a whole state; None to the leader itself, who knows."""
        return None

    def agree(self, mine: Mapping[str, Any]) -> None:
        """Refuse a team of which some hold something else than the others."""

    def judges(self, nth: int) -> bool:
        """Whether it falls to this process to judge the n-th batch of cases."""
        return True

    def together(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Sum columns over the team, in place: each process has zeros where it fell to another to judge."""


SOLO = Team()


#: While it waits for others, a process looks up this often: a signal is heard even if a worker hangs.
_LOOK_UP = timedelta(seconds=0.5)
_LEADER = 0

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, kw_only=True)
class Group(Team):
    """Processes that have met. `lost` finds out what became of a worker that no longer answers."""

    device: torch.device  # where what is sent has to be
    lost: Callable[[Exception], WorkerLostError]

    def part(self, batch: Batch) -> Batch:
        """A contiguous share of the rows."""
        return part_of(batch, self.rank, self.size)

    def sum(self, *values: float) -> Sequence[float]:
        """In double precision."""
        total: list[float] = self._summed(_numbers(values)).tolist()
        return total

    def add_up(self, parameters: Sequence[Tensor], *values: float) -> Sequence[float]:
        """A process whose share has no slots formed no gradients: it adds zeros. Who has one goes with the values."""
        there = [parameter.grad is not None for parameter in parameters]
        few = _numbers([*values, *there]).to(self.device)
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad.contiguous() for each in parameters]
        self._sum_all(few, gradients)
        total: list[float] = few.tolist()
        for parameter, gradient, count in zip(parameters, gradients, total[len(values) :], strict=True):
            parameter.grad = gradient if count else None
        return total[: len(values)]

    def _sum_all(self, few: Tensor, gradients: Sequence[Tensor]) -> None:
        """The few numbers are under way while the gradients are: in a small step it is the waiting that takes long."""
        finish = self._started(few)
        for bucket in buckets(gradients):
            self._sum_bucket(bucket)
        finish()

    def _sum_bucket(self, bucket: Sequence[Tensor]) -> None:
        total = self._summed(torch.cat([tensor.reshape(-1) for tensor in bucket]) if bucket[1:] else bucket[0])
        if total is bucket[0]:  # summed where it stands
            return
        parts = total.view(-1).split_with_sizes([tensor.numel() for tensor in bucket])
        for tensor, part in zip(bucket, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))

    def told(self, word: Word) -> Word:
        """By JSON."""
        heard: Word = json.loads(self._sent(json.dumps(word).encode(), _LEADER))
        return heard

    def hear(self, say: Callable[[], Checkpoint]) -> Checkpoint | None:
        """Tensors as safetensors, the rest as JSON."""
        said = say() if self.leads else Checkpoint({}, {})
        state = self.told(said.state)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in said.tensors.items()}
        packed = self._sent(as_bytes(tensors) if self.leads else b"", _LEADER)
        return None if self.leads else Checkpoint(from_bytes(packed), state)

    def agree(self, mine: Mapping[str, Any]) -> None:
        """All hear all, so that all come to the same verdict."""
        said = [json.loads(self._sent(json.dumps(mine).encode(), rank)) for rank in range(self.size)]
        for rank, theirs in enumerate(said):
            for name, first, other in differences(said[_LEADER], theirs):
                raise UnveilError(
                    f"the workers do not agree: {name} is {first} for the first, and {other} for worker {rank + 1}",
                    hint="Give all workers the same log, settings and versions.",
                )

    def judges(self, nth: int) -> bool:
        """In turn: batches of long histories, which stand together, are spread."""
        return nth % self.size == self.rank

    def together(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Exact: x + 0 = x."""
        for column in columns.values():
            column[...] = self._summed(torch.from_numpy(column)).cpu().numpy()

    def _summed(self, tensor: Tensor) -> Tensor:
        """The sum over the team, on the device where it was formed; it may be written over the tensor."""
        tensor = tensor.to(self.device).contiguous()
        self._started(tensor)()
        return tensor

    def _started(self, tensor: Tensor) -> Callable[[], None]:
        """Begin to sum a tensor over the team, where it stands; the sum is there once the answer was called."""
        work = self._told_of_loss(lambda: dist.all_reduce(tensor, async_op=True))
        return lambda: self._told_of_loss(lambda: self._finished(work))

    def _sent(self, message: bytes, source: int) -> bytes:
        """The message of one of the team."""
        size = torch.tensor([len(message)], device=self.device)
        self._wait(lambda: dist.broadcast(size, source, async_op=True))
        content = torch.empty(int(size), dtype=torch.uint8, device=self.device)
        if source == self.rank:
            content = torch.frombuffer(bytearray(message), dtype=torch.uint8).to(self.device)
        self._wait(lambda: dist.broadcast(content, source, async_op=True))
        return content.cpu().numpy().tobytes()

    def _wait(self, start: Callable[[], Any]) -> None:
        """Until all have taken part."""
        self._told_of_loss(lambda: self._finished(start()))

    def _told_of_loss(self, action: Callable[[], Result]) -> Result:
        """Whatever torch or a line says of a connection means that a worker is gone."""
        try:
            return action()
        except (RuntimeError, OSError, EOFError) as error:
            raise self.lost(error) from error

    def _finished(self, work: Any) -> None:
        while not self._done(work):
            pass

    def _done(self, work: Any) -> bool:
        if self.device.type == "cuda":  # NCCL works in the order of the stream; nothing is waited for here
            return bool(work.wait())
        try:
            return bool(work.wait(_LOOK_UP))
        except RuntimeError:  # it failed, or merely takes longer
            return bool(work.wait()) if work.is_completed() else False


def _numbers(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
