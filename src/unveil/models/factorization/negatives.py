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
                "as many negatives as asked for cannot be drawn for each positive",
                found=self.each,
                expected=f"1 to {others}: the items less the one that was taken",
            )

    def beside(self, positives: Tuples, rng: np.random.Generator) -> Tuples:
        """The positives with value 1, then their negatives with value 0."""
        return positives.with_values(1).and_also(self.draw(positives, rng))

    def draw(self, positives: Tuples, rng: np.random.Generator) -> Tuples:
        """Negatives of value 0; those that hit an interaction are drawn again, item by item."""
        drawn = self._somewhere(positives.where(np.repeat(np.arange(len(positives)), self.each)), rng)
        while (hit_M := self._interacted(drawn.key_N)).any():
            item_M = drawn.item_N.copy()
            item_M[hit_M] = rng.integers(0, drawn.shape[1], int(hit_M.sum()))
            drawn = replace(drawn, item_N=item_M)
        return drawn.with_values(0)

    def _somewhere(self, tuples: Tuples, rng: np.random.Generator) -> Tuples:
        users, items, steps = tuples.shape
        item_M: Index = rng.integers(0, items, len(tuples))
        if self.where == "slots":
            return replace(tuples, item_N=item_M)
        user_M, step_M = (rng.integers(0, size, len(tuples)) for size in (users, steps))
        return replace(tuples, user_N=user_M, item_N=item_M, step_N=step_M)

    @cached_property
    def _taken(self) -> Index:
        return np.sort(self.interacted.key_N)

    def _interacted(self, key_M: Index) -> NDArray[np.bool_]:
        place_M = np.searchsorted(self._taken, key_M).clip(max=len(self._taken) - 1)
        found: NDArray[np.bool_] = self._taken[place_M] == key_M
        return found
