"""Observed (user, item, step, value) tuples, and their parts. Shapes: N tuples, U users, V items, T steps."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError

Index = NDArray[np.int64]
Values = NDArray[np.float64]

#: Fewer tuples than this cannot be split 80/10/10.
FEWEST = 10


@dataclass(frozen=True, eq=False)
class Tuples:
    """What was observed, and how large the cube is that it was observed in."""

    user_N: Index
    item_N: Index
    step_N: Index
    value_N: Values
    shape: tuple[int, int, int]  # users, items, steps

    def __len__(self) -> int:
        return len(self.user_N)

    @property
    def sides(self) -> tuple[Index, Index, Index]:
        """The three indices of each tuple."""
        return self.user_N, self.item_N, self.step_N

    @property
    def key_N(self) -> Index:
        """The place of each tuple in the cube laid out flat."""
        _, items, steps = self.shape
        return (self.user_N * items + self.item_N) * steps + self.step_N

    def where(self, rows: NDArray[Any]) -> Self:
        """Some of the tuples."""
        picked = {name: getattr(self, name)[rows] for name in ("user_N", "item_N", "step_N", "value_N")}
        return replace(self, **picked)

    def with_values(self, value: float) -> Self:
        """The same tuples with one value for all."""
        return replace(self, value_N=np.full(len(self), value))

    def and_also(self, other: "Tuples") -> Self:
        """These tuples, then those."""
        pairs = zip((*self.sides, self.value_N), (*other.sides, other.value_N), strict=True)
        user_N, item_N, step_N, value_N = (np.concatenate(pair) for pair in pairs)
        return replace(self, user_N=user_N, item_N=item_N, step_N=step_N, value_N=value_N)


class Parts(NamedTuple):
    """Tuples to learn from, to choose by, and to report on."""

    train: Tuples
    valid: Tuples
    test: Tuples


def split(tuples: Tuples, rng: np.random.Generator) -> Parts:
    """80 / 10 / 10 at random, as in the paper."""
    if len(tuples) < FEWEST:
        raise UnveilError(
            "too few ratings to split 80/10/10",
            found=len(tuples),
            expected=f"at least {FEWEST}",
            hint="Use a longer log, or lower --min-item, --min-user and --min-rating.",
        )
    tenth = len(tuples) // 10
    shuffled = rng.permutation(len(tuples))
    return Parts(*(tuples.where(np.sort(rows)) for rows in np.split(shuffled, [-2 * tenth, -tenth])))
