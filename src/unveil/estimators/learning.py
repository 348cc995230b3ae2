"""Estimators that learn something from the training part before a network does. Shapes: N events, M slots."""

from collections.abc import Iterator
from typing import Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.estimators.base import Estimator

#: Slots looked at together: signals may hold a row of all items for each.
BLOCK = 4096


@runtime_checkable
class Learns(Protocol):
    """An estimator with a `fit`: `build` hands it the training part, and nothing else is ever shown to it."""

    def fit(self, train: Sequences) -> Self:
        """Learn, and return the estimator."""


def events(train: Sequences) -> Slots:
    """Every event of the training part as a slot."""
    columns = (train.user_N, train.item_N, train.step_N, train.event_N)
    return Slots(*(torch.from_numpy(column.astype(np.int64)) for column in columns))


def blocks(slots: Slots) -> Iterator[Slots]:
    """The slots in parts that are small enough to hold a row of all items for each."""
    return (slots.part(at, at + BLOCK) for at in range(0, len(slots), BLOCK))


def weights_of(estimator: Estimator, slots: Slots) -> Tensor:
    """w_M of any number of slots, block by block."""
    return torch.cat([estimator(part).weight_M for part in blocks(slots)])
