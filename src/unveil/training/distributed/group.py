"""A team over torch.distributed: gloo between CPUs, NCCL between GPUs."""

import json
from collections.abc import Callable, Mapping, Sequence
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
from unveil.training.checkpoint import Checkpoint
from unveil.training.distributed.shares import buckets, part_of
from unveil.training.distributed.team import Team, Word, WorkerLostError
from unveil.training.identity import differences

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
