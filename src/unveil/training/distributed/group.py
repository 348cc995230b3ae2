"""A team over torch.distributed: gloo between CPUs, NCCL between GPUs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

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
        total: list[float] = self._summed(torch.tensor(values, dtype=torch.float64)).tolist()
        return total

    def add_up(self, parameters: Sequence[Tensor]) -> None:
        """A process whose share has no slots formed no gradients: it adds zeros."""
        used = self.sum(*(parameter.grad is not None for parameter in parameters))
        moved = [parameter for parameter, count in zip(parameters, used, strict=True) if count]
        for parameter in moved:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for bucket in buckets([parameter.grad for parameter in moved if parameter.grad is not None]):
            self._sum_bucket(bucket)

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
        self._wait(lambda: dist.all_reduce(tensor, async_op=True))
        return tensor

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
        """Until all have taken part. Whatever torch says of a connection means that a worker is gone."""
        try:
            work = start()
            while not self._done(work):
                pass
        except RuntimeError as error:
            raise self.lost(error) from error

    def _done(self, work: Any) -> bool:
        if self.device.type == "cuda":  # NCCL works in the order of the stream; nothing is waited for here
            return bool(work.wait())
        try:
            return bool(work.wait(_LOOK_UP))
        except RuntimeError:  # it failed, or merely takes longer
            return bool(work.wait()) if work.is_completed() else False
