"""What IPS and ITPS share: the item of the log, weighted by the inverse of a propensity."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, Signal, refuse_other_kind
from unveil.propensity.base import PropensityModel
from unveil.propensity.weights import inverse


@dataclass(frozen=True, eq=False)
class InversePropensity:
    """w = max(θ, clip)^−exponent. A clip above 0 or an exponent below 1 trades bias for variance.

    Self-normalised, the risk is divided by the sum of the weights: biased by a term that vanishes with the number of
    slots in a batch, and free of the scale of θ.
    """

    propensity: PropensityModel
    clip: float = 0.0
    exponent: float = 1.0
    self_normalised: bool = False

    name: ClassVar[str]
    needs: ClassVar[Need]
    cuts: ClassVar[bool] = False  # whether it finds by itself where to cut its weights, and needs no clip

    def __post_init__(self) -> None:
        refuse_unless(0 <= self.clip <= 1, f"{self.name}.clip", self.clip, "between 0 and 1")
        refuse_unless(0 <= self.exponent < float("inf"), f"{self.name}.exponent", self.exponent, "0 or more")
        refuse_other_kind(self)

    @property
    def ceiling(self) -> float:
        """The largest weight that the clip allows; without an exponent all weights are 1, and none is clipped."""
        return self.clip**-self.exponent if self.clip and self.exponent else float("inf")

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, weighted."""
        return Signal(slots.item_M, self.inverse(slots))

    def inverse(self, slots: Slots) -> Tensor:
        """w_M of the slots' items."""
        return inverse(self.propensity(slots), self.clip, self.exponent)
