"""The likelihood of a choice among exposed items: P ∝ e^f averaged over what may be exposed, or the best of it."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unveil.data.slots import Slots
from unveil.errors import check_range
from unveil.estimators.base import Checked, Need, Signal, constant, register
from unveil.estimators.losses import ByRows
from unveil.propensity.base import PropensityModel


@register
@dataclass(frozen=True, eq=False)
class Consideration(Checked):
    """P(i) = Σ_O P(O) · e^f_i / Σ_{j in O} e^f_j over all O that can be exposed: P ∝ e^f among what was.

    The mean over the 2^V sets is one integral (`race`). Consistent for a user who chooses among the exposed with
    P ∝ e^f; where many items are exposed and none stands out it is `corrected`.
    """

    propensity: PropensityModel
    lowest: float = 1e-6  # θ is clipped between these: an item that is surely exposed leaves nothing to those behind it
    highest: float = 0.99

    name: ClassVar[str] = "consideration"
    needs: ClassVar[Need] = "temporal"

    def __post_init__(self) -> None:
        valid, found = 0 < self.lowest <= self.highest < 1, f"{self.lowest:g} and {self.highest:g}"
        check_range(valid, f"{self.name}.lowest, highest", found, "0 < lowest ≤ highest < 1")
        super().__post_init__()

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, constant(slots), theta_MV=ByRows(slots, self.theta))

    def offset(self, slots: Slots) -> Tensor:
        """log θ, as in corrected: the order of P where many items are exposed, without an integral for every item."""
        return self.theta(slots).log()

    def theta(self, slots: Slots) -> Tensor:
        return self.propensity.of_all(slots).clamp(self.lowest, self.highest)


@register
@dataclass(frozen=True, eq=False)
class RationalChoice(Checked):
    """Σ_j a_j · softplus(f_j − f_i) for −log P(i), with a_j = −log(1 − θ_sjt), up to what does not depend on f.

    The user chooses the best of what is exposed: P(i chosen) = θ_i · Π_{j better than i} (1 − θ_j), and −log P is
    −log θ_i + Σ_{j: f_j > f_i} a_j, its step in f_j − f_i smoothed by a softplus. The smooth loss is least, at a slot,
    where exp f_i ∝ P(i) / a_i: for such a user that is the order of preferences whatever θ is.
    """

    propensity: PropensityModel
    highest: float = 0.99  # θ is clipped here: beyond it a_j grows without bound, and 1 − θ is noise

    name: ClassVar[str] = "rational"
    needs: ClassVar[Need] = "temporal"

    def __post_init__(self) -> None:
        check_range(0 < self.highest < 1, f"{self.name}.highest", self.highest, "between 0 and 1")
        super().__post_init__()

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, constant(slots), rival_MV=ByRows(slots, self.rivals))

    def offset(self, slots: Slots) -> Tensor:
        """log a: at its minimum the loss has P(chosen) ∝ a · exp f."""
        return self.rivals(slots).log()

    def rivals(self, slots: Slots) -> Tensor:
        return -torch.log1p(-self.propensity.of_all(slots).clamp_max(self.highest))
