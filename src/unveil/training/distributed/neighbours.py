"""A team of one machine: what all have to add up goes over a shelf, and the rest as in any group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from unveil.training.distributed.group import Group
from unveil.training.distributed.shelf import Shelf


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
