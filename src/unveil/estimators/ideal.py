"""The loss one would minimise if the truth were known: what estimators are measured against.

Shapes: M slots, B slots asked for, U users, T steps.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.slots import Slots
from unveil.estimators.base import Need, Signal, register

#: Slots whose best item is looked up at a time, and the mark of one not looked up yet.
_BLOCK, _UNKNOWN = 1024, -1


class Truth(Protocol):
    """What is asked of a world: γ, and the item of highest γ."""

    @property
    def n_users(self) -> int:
        """Number of users."""

    @property
    def n_steps(self) -> int:
        """Number of steps."""

    def ideal_target(self, user_B: NDArray[Any], step_B: NDArray[Any]) -> NDArray[np.int64]:
        """The item of highest γ at each slot."""

    def relevance_of(self, user_M: NDArray[Any], item_M: NDArray[Any], step_M: NDArray[Any]) -> NDArray[np.float32]:
        """γ_M of one item a slot."""


@register
@dataclass(frozen=True, eq=False)
class Ideal:
    """Target argmax_i γ_sit, w = γ_sit of it (eq. of L_ideal): a rational user aware of all items.

    Each slot's target is found once and kept: U × T numbers of each kind.
    """

    world: Truth

    name: ClassVar[str] = "ideal"
    needs: ClassVar[Need] = "truth"
    self_normalised: ClassVar[bool] = False
    _target_UT: NDArray[np.int64] = field(init=False, repr=False)
    _gamma_UT: NDArray[np.float32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = (self.world.n_users, self.world.n_steps)
        object.__setattr__(self, "_target_UT", np.full(shape, _UNKNOWN))
        object.__setattr__(self, "_gamma_UT", np.empty(shape, np.float32))

    def __call__(self, slots: Slots) -> Signal:
        """The best item at the slot's own user and step, weighted by its relevance."""
        user_M, step_M = slots.user_M.cpu().numpy(), slots.step_M.cpu().numpy()
        self._learn(user_M, step_M)
        target_M = torch.from_numpy(self._target_UT[user_M, step_M])
        return Signal(target_M, torch.from_numpy(self._gamma_UT[user_M, step_M])).to(slots.item_M.device)

    def _learn(self, user_M: NDArray[Any], step_M: NDArray[Any]) -> None:
        new_M = self._target_UT[user_M, step_M] == _UNKNOWN
        user_M, step_M = user_M[new_M], step_M[new_M]
        for start in range(0, len(user_M), _BLOCK):
            user_B, step_B = user_M[start : start + _BLOCK], step_M[start : start + _BLOCK]
            target_B = self.world.ideal_target(user_B, step_B)
            self._target_UT[user_B, step_B] = target_B
            self._gamma_UT[user_B, step_B] = self.world.relevance_of(user_B, target_B, step_B)
