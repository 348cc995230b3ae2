"""Impressions: what users were shown and left, recorded beside what they took. Shapes: B slots, V items, N rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.simulation.world import World

#: Slots that stand for all where exposure is summed.
_SLOTS = 4096


@dataclass(frozen=True)
class Impressions:
    """Of all that is exposed and not taken, each is recorded with probability `rate`: logs of impressions are large."""

    rate: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise UnveilError("out of range", where="impressions", found=self.rate, expected="above 0, at most 1")

    def recorded(
        self, exposed_BV: NDArray[np.bool_], taken_B: NDArray[np.integer[Any]], rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Slots and items of what is recorded, by slot; `taken_B` is the item that was taken, −1 for none."""
        kept_BV = exposed_BV & (rng.random(exposed_BV.shape, np.float32) < self.rate)
        some_B = np.flatnonzero(taken_B >= 0)
        kept_BV[some_B, taken_B[some_B]] = False
        slot_N, item_N = np.nonzero(kept_BV)
        return slot_N, item_N


def rate_that_leaves(world: "World", events: int, left: float) -> float:
    """The rate at which `left` impressions are recorded for each of the events of a log of this world, at most 1.

    Σ θ over all slots and items, less what is taken, is what there is to record; some slots stand for all.
    """
    user_S, step_S = world.slots()
    some = np.unique(np.linspace(0, len(user_S) - 1, min(_SLOTS, len(user_S))).astype(np.int64))
    shown = float(world.exposure(user_S[some], step_S[some]).sum(dtype=np.float64)) * len(user_S) / len(some)
    return min(1.0, left * events / max(shown - events, 1.0))
