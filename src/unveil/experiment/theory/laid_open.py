"""A small world laid open: θ and γ of every item at every slot. Shapes: S slots of the world, M events, U, V, T."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.slots import Slots
from unveil.propensity.factors import Floats
from unveil.simulation.choice import NOTHING
from unveil.simulation.world import World

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LaidOpen:
    """Tables in double precision that larger worlds never hold whole; the rows are the slots in the world's order."""

    world: World

    def __len__(self) -> int:
        return len(self.user_S)

    @cached_property
    def user_S(self) -> NDArray[np.int64]:
        """The user of each slot."""
        return self.world.slots()[0].astype(np.int64)

    @cached_property
    def step_S(self) -> NDArray[np.int64]:
        """The step of each slot."""
        return self.world.slots()[1].astype(np.int64)

    @cached_property
    def theta_SV(self) -> Table:
        """θ_sit."""
        return self.world.exposure(self.user_S, self.step_S).astype(np.float64)

    @cached_property
    def gamma_SV(self) -> Table:
        """γ_sit."""
        return self.world.relevance(self.user_S, self.step_S).astype(np.float64)

    @cached_property
    def logit_SV(self) -> Floats:
        """The logits of γ, by which items are ordered: where γ rounds to 1 they still differ."""
        return self.world.relevance_logits.logits(self.user_S, self.step_S)

    @cached_property
    def favourite_S(self) -> NDArray[np.int64]:
        """argmax_i γ_sit."""
        return self.world.ideal_target(self.user_S, self.step_S)

    @cached_property
    def _row_UT(self) -> NDArray[np.int64]:
        row_UT = np.full((self.world.n_users, self.world.n_steps), -1)
        row_UT[self.user_S, self.step_S] = np.arange(len(self))
        return row_UT

    def rows(self, slots: Slots) -> Tensor:
        """Which rows of the tables these slots are."""
        return torch.from_numpy(self._row_UT[slots.user_M.numpy(), slots.step_M.numpy()])

    def slots(self, item_S: NDArray[Any]) -> Slots:
        """The slots that gave an event, each with the item it gave; `NOTHING` marks the others."""
        taken_M = np.flatnonzero(item_S != NOTHING)
        return slots_of(self.user_S[taken_M], item_S[taken_M], self.step_S[taken_M])

    def all_with(self, item: int) -> Slots:
        """Every slot, with one and the same item."""
        return self.slots(np.full(len(self), item))


def slots_of(user_M: NDArray[Any], item_M: NDArray[Any], step_M: NDArray[Any]) -> Slots:
    """Slots from columns of any whole numbers."""
    return Slots(*(torch.from_numpy(column.astype(np.int64)) for column in (user_M, item_M, step_M)))
