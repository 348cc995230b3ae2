"""Propensities that are known: those of a simulated world, and those that a log records.

Shapes: N rows of the log, M slots, B some users or slots, U users, V items.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.base import Kind, Source, as_theta, events_only, indices, register
from unveil.wording import quantity

#: Users whose steps are averaged at a time.
_BLOCK = 256


class Exposure(Protocol):
    """A world whose θ is known at given users, items and steps."""

    @property
    def n_users(self) -> int:
        """Number of users."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    def exposure(self, user_B: NDArray[Any], step_B: NDArray[Any]) -> NDArray[np.float32]:
        """θ_BV of every item."""

    def exposure_of(self, user_M: NDArray[Any], item_M: NDArray[Any], step_M: NDArray[Any]) -> NDArray[np.float32]:
        """θ_M of one item a slot."""

    def static_exposure(self, user_B: NDArray[Any]) -> NDArray[np.float32]:
        """θ_BV averaged over all steps."""


@register
@dataclass
class KnownTemporal:
    """θ_sit itself. The users, items and steps of the log are those of the world."""

    world: Exposure

    name: ClassVar[str] = "known-temporal"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "truth"

    def fit(self, train: Sequences) -> Self:
        """Nothing to learn."""
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ_sit of the slots' items."""
        return as_theta(self.world.exposure_of(*indices(slots)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        """θ_sit of all items."""
        user_M, _, step_M = indices(slots)
        return as_theta(self.world.exposure(user_M, step_M), slots)


@register
@dataclass
class KnownStatic:
    """θ_si = (1/T) Σ_t θ_sit (the paper's section 5.1.3): averaged once for a user, then kept."""

    world: Exposure

    name: ClassVar[str] = "known-static"
    kind: ClassVar[Kind] = "static"
    source: ClassVar[Source] = "truth"
    _theta_UV: NDArray[np.float32] = field(init=False, repr=False)
    _known_U: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._theta_UV = np.empty((self.world.n_users, self.world.n_items), np.float32)
        self._known_U = np.zeros(self.world.n_users, bool)

    def fit(self, train: Sequences) -> Self:
        """Average over the steps for every user with training events."""
        self._average(np.flatnonzero(train.length_U))
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ_si of the slots' items."""
        user_M, item_M, _ = indices(slots)
        self._average(user_M)
        return as_theta(self._theta_UV[user_M, item_M], slots)

    def of_all(self, slots: Slots) -> Tensor:
        """θ_si of all items."""
        user_M, _, _ = indices(slots)
        self._average(user_M)
        return as_theta(self._theta_UV[user_M], slots)

    def _average(self, user_M: NDArray[Any]) -> None:
        new_B = np.unique(user_M[~self._known_U[user_M]])
        for start in range(0, len(new_B), _BLOCK):
            user_B = new_B[start : start + _BLOCK]
            self._theta_UV[user_B] = self.world.static_exposure(user_B)
        self._known_U[new_B] = True


@register
@dataclass
class Logged:
    """θ of each event as its own row of the log gives it; the log does not record that of other items."""

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
        """An error: not recorded."""
        raise events_only("propensity")
