"""Blocks of neighbouring steps, between which exposure may differ. Shapes: N events, M slots, T steps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.errors import UnveilError, refuse_unless

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """The steps from `first` on, in `count` blocks of equal length; steps outside are in the nearest block."""

    first: int
    steps: int
    count: int

    @classmethod
    def of(cls, train: Sequences, count: int) -> "Blocks":
        """Over the steps that occur in training; never more blocks than steps."""
        refuse_unless(count >= 1, "blocks", count, "at least 1")
        if not len(train):
            raise UnveilError("exposure cannot be estimated: the training part has no events")
        first, steps = int(train.step_N.min()), int(train.step_N.max()) - int(train.step_N.min()) + 1
        return cls(first, steps, min(count, steps))

    def at(self, step: NDArray[Any]) -> Index:
        """The block of each step."""
        block = (step.astype(np.int64) - self.first) * self.count // self.steps
        return np.clip(block, 0, self.count - 1)
