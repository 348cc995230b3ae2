"""The rational choice among exposed items: what was probably exposed and not chosen is a negative, and nothing else."""

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
class RationalChoice:
    """Σ_j a_j · softplus(f_j − f_i) for −log P(i), with a_j = −log(1 − θ_sjt), up to what does not depend on f.

    The user chooses the best of what is exposed, so P(i chosen) = θ_i · Π_{j better than i} (1 − θ_j), and minus its
    logarithm is −log θ_i + Σ_{j: f_j > f_i} a_j. The step in f_j − f_i is made smooth by a softplus. An
    item almost certainly exposed but not chosen acts as a negative, one hardly exposed hardly at all. The smooth loss
    is least, at a slot, where exp f_i ∝ P(i) / a_i: for such a user that is the order of tastes whatever θ is.
    """

    propensity: PropensityModel
    highest: float = 0.99  # θ is cut here: beyond it a_j grows without bound, and 1 − θ is noise

    name: ClassVar[str] = "rational"
    needs: ClassVar[Need] = "temporal"
    self_normalised: ClassVar[bool] = False

    def __post_init__(self) -> None:
        refuse_unless(0 < self.highest < 1, f"{self.name}.highest", self.highest, "between 0 and 1")
        check_kind(self)

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, and how much each other item counts against it at the slot's own user and step."""
        ones_M = torch.ones(len(slots), device=slots.item_M.device)
        return Signal(slots.item_M, ones_M, rival_MV=ByRows(slots, self.rivals))

    def offset(self, slots: Slots) -> Tensor:
        """log a: at its minimum the loss has P(chosen) ∝ a · exp f."""
        return self.rivals(slots).log()

    def rivals(self, slots: Slots) -> Tensor:
        """a of every item at these slots."""
        return -torch.log1p(-self.propensity.of_all(slots).clamp_max(self.highest))
