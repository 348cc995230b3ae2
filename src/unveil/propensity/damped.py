"""Popularity, damped: less of the relevance in it is divided out, and less of the exposure."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.propensity.base import Kind, register
from unveil.propensity.popularity import StaticPopularity, TemporalPopularity


def refuse_exponent(exponent: float, where: str) -> None:
    """An exponent is at least 0: all alike; at 1 it is popularity itself."""
    refuse_unless(0 <= exponent < float("inf"), f"{where}.exponent", exponent, "0 or more")


@register
@dataclass
class DampedStatic(StaticPopularity):
    """θ̂_i ∝ popularity_i^exponent, 1 for the most popular: the paper's weights on real data, as a propensity.

    Assumes log exposure = exponent · log popularity + what averages out over items. Nothing in the log tells the
    exponent; where there are ratings, `rated-static` finds it.
    """

    exponent: float = 0.5

    name: ClassVar[str] = "damped-static"
    kind: ClassVar[Kind] = "static"
    assumes: ClassVar[str] = "that exposure is popularity to a power that somebody chose"

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_exponent(self.exponent, self.name)

    def fit(self, train: Sequences) -> Self:
        """Count and damp."""
        super().fit(train)
        self._theta_V = (self._theta_V / self._theta_V.max()) ** self.exponent
        return self


@register
@dataclass
class DampedTemporal(TemporalPopularity):
    """θ̂_it ∝ popularity_it^exponent, 1 for the most popular of all items and steps.

    `tempered` with popularity-temporal and static = 1 takes the exponent that swaps within histories bear out.
    """

    exponent: float = 0.5

    name: ClassVar[str] = "damped-temporal"
    kind: ClassVar[Kind] = "temporal"
    assumes: ClassVar[str] = DampedStatic.assumes
    _largest: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_exponent(self.exponent, self.name)

    def fit(self, train: Sequences) -> Self:
        """Count, and find the largest count."""
        super().fit(train)
        self._largest = float(self._theta_TV.data.max()) + (self._floor if self.add else 0.0)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂ of the slots' items at their own steps."""
        return self._damped(super().__call__(slots))

    def of_all(self, slots: Slots) -> Tensor:
        """θ̂ of all items at the slots' own steps."""
        return self._damped(super().of_all(slots))

    def _damped(self, theta: Tensor) -> Tensor:
        return (theta / self._largest).clamp_max(1.0) ** self.exponent
