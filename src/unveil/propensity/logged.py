"""The propensities that the log itself recorded. Shapes: N rows of the log, M slots."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.base import Kind, Source, of_events_alone, register
from unveil.wording import quantity


@register
@dataclass
class Logged:
    """θ of each event as its own row of the log gives it; of other items the log says nothing."""

    propensity_N: NDArray[Any]

    name: ClassVar[str] = "logged"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "logged"

    def fit(self, train: Sequences) -> Self:
        """Check that every training event has a propensity above 0 and at most 1."""
        theta_N = self.propensity_N[train.event_N]
        bad_N = ~((theta_N > 0) & (theta_N <= 1))
        if bad_N.any():
            events, first = quantity(int(bad_N.sum()), "training event"), int(train.event_N[bad_N][0]) + 1
            raise UnveilError(
                "the log has propensities outside (0, 1]",
                where=f"{events}, first row {first} of the log",
                found=float(theta_N[bad_N][0]),
                expected="a number above 0, at most 1",
            )
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ of the slots' own events."""
        if slots.event_M is None:
            raise UnveilError("logged propensities are known for events of the log only, and these slots are not")
        theta_M = self.propensity_N[slots.event_M.cpu().numpy()].astype(np.float32)
        return torch.from_numpy(theta_M).to(slots.item_M.device)

    def of_all(self, slots: Slots) -> Tensor:
        """Not to be had."""
        raise of_events_alone("propensity")
