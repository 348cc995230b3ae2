"""What the trainer asks of the processes it shares its work with. One process by itself is a team of one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from numpy.typing import NDArray
from torch import Tensor

from unveil.data.batches import Batch
from unveil.errors import UnveilError
from unveil.training.checkpoint import Checkpoint

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
