"""The likelihood of a choice from what happened to be exposed, in full: no weights, and no approximation."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, Signal, check_kind, register
from unveil.estimators.losses import ByRows
from unveil.propensity.base import PropensityModel


@register
@dataclass(frozen=True, eq=False)
class Consideration:
    """P(i) = Σ_O P(O) · e^f_i / Σ_{j in O} e^f_j over all O that can be exposed: P ∝ e^f among what was.

    The mean over the 2^V sets is one integral (`race`). Consistent for a user who chooses among the exposed at random,
    P ∝ e^f. For one who chooses the best of them the loss is least in the limit of ever steeper f in the right order;
    on the way there it has plateaus, so that a network need not find it. Where many items are exposed and none stands
    out it is `corrected`: their sum hardly varies then. Where nobody sees two items there is nothing to learn.
    """

    propensity: PropensityModel
    lowest: float = 1e-6  # θ is cut here from below,
    highest: float = 0.99  # and here from above: an item that is surely exposed leaves nothing to those behind it

    name: ClassVar[str] = "consideration"
    needs: ClassVar[Need] = "temporal"
    self_normalised: ClassVar[bool] = False

    def __post_init__(self) -> None:
        valid, found = 0 < self.lowest <= self.highest < 1, f"{self.lowest:g} and {self.highest:g}"
        refuse_unless(valid, f"{self.name}.lowest, highest", found, "0 < lowest ≤ highest < 1")
        check_kind(self)

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, and θ of every item at the slot's own user and step."""
        ones_M = torch.ones(len(slots), device=slots.item_M.device)
        return Signal(slots.item_M, ones_M, theta_MV=ByRows(slots, self.theta))

    def offset(self, slots: Slots) -> Tensor:
        """log θ, as in corrected: the order of P where many items are exposed, and no integral for every item.

        Where few are, an item that is seldom exposed may be chosen less than f + log θ says beside one exposed alone.
        """
        return self.theta(slots).log()

    def theta(self, slots: Slots) -> Tensor:
        """θ of every item at these slots, cut."""
        return self.propensity.of_all(slots).clamp(self.lowest, self.highest)
