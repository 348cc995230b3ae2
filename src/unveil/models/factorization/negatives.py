"""Tuples that nobody interacted with, drawn at random: the negatives of exposure. Shapes: N positives, M negatives."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.models.factorization.tuples import Index, Tuples

#: At the slots of the positives, whose users were there; or anywhere in the cube of users, items and steps.
Where = Literal["slots", "anywhere"]


#: Rounds after which negatives that still hit an interaction leave their slot: all of its items may be taken.
_PATIENCE = 50


@dataclass(frozen=True, eq=False)
class Negatives:
    """Draws `each` negatives for every positive; none is ever a tuple of `interacted`."""

    interacted: Tuples
    each: int = 3
    where: Where = "slots"

    def __post_init__(self) -> None:
        others = self.interacted.shape[1] - 1
        if not 0 < self.each <= others:
            raise UnveilError(
                "more negatives than items",
                found=self.each,
                expected=f"1 to {others} for each positive: the items less the one that was taken",
                hint="Pass a smaller --negatives, or use a log with more items.",
            )
        if len(self._taken) == np.prod(self.interacted.shape):
            raise UnveilError("every user met every item at every step: there is nothing that was not exposed")

    def beside(self, positives: Tuples, rng: np.random.Generator) -> Tuples:
        """The positives with value 1, then their negatives with value 0."""
        return positives.with_values(1).and_also(self.draw(positives, rng))

    def draw(self, positives: Tuples, rng: np.random.Generator) -> Tuples:
        """Negatives of value 0; those that hit an interaction are drawn again."""
        slots = positives.where(np.repeat(np.arange(len(positives)), self.each))
        drawn = self._moved(slots, np.ones(len(slots), bool), self.where, rng)
        rounds = 0
        while (hit_M := self._interacted(drawn.key_N)).any():
            drawn = self._moved(drawn, hit_M, self.where if rounds < _PATIENCE else "anywhere", rng)
            rounds += 1
        return drawn.with_values(0)

    @staticmethod
    def _moved(tuples: Tuples, move_M: NDArray[np.bool_], where: Where, rng: np.random.Generator) -> Tuples:
        """Some of the tuples at other items, or anywhere else."""
        moved, count = [side.copy() for side in tuples.sides], int(move_M.sum())
        for side in (1,) if where == "slots" else (0, 1, 2):
            moved[side][move_M] = rng.integers(0, tuples.shape[side], count)
        return replace(tuples, user_N=moved[0], item_N=moved[1], step_N=moved[2])

    @cached_property
    def _taken(self) -> Index:
        return np.unique(self.interacted.key_N)

    def _interacted(self, key_M: Index) -> NDArray[np.bool_]:
        place_M = np.searchsorted(self._taken, key_M).clip(max=len(self._taken) - 1)
        found: NDArray[np.bool_] = self._taken[place_M] == key_M
        return found
