"""What corrected softmaxes share: the item of the log, unweighted, and logits shifted by a propensity in training."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, Signal, refuse_other_kind
from unveil.estimators.losses.by_rows import ByRows
from unveil.propensity.base import PropensityModel


@dataclass(frozen=True, eq=False)
class PropensityOffset:
    """Training sees f_i + strength · log max(θ_i, clip) of every item, serving f_i alone.

    Where P(i taken) ∝ θ_i · exp f_i, cross-entropy on the shifted logits finds f up to a constant. Nothing is weighted,
    so there is no variance to explode: a small θ makes an item cheap not to have been taken, not dear to have been.
    """

    propensity: PropensityModel
    strength: float = 1.0
    clip: float = 1e-9  # below it, exposure is as good as none; the logarithm must stay finite

    name: ClassVar[str]
    needs: ClassVar[Need]
    self_normalised: ClassVar[bool] = False

    def __post_init__(self) -> None:
        refuse_unless(0 < self.clip <= 1, f"{self.name}.clip", self.clip, "above 0, at most 1")
        refuse_unless(0 <= self.strength < float("inf"), f"{self.name}.strength", self.strength, "0 or more")
        refuse_other_kind(self)

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log, and the shift of every item's logit at the slot's own user and step."""
        ones_M = torch.ones(len(slots), device=slots.item_M.device)
        return Signal(slots.item_M, ones_M, ByRows(slots, self.offset))

    def offset(self, slots: Slots) -> Tensor:
        """What training adds to the logit of every item at these slots."""
        return self.shift(self.propensity.of_all(slots))

    def shift(self, theta: Tensor) -> Tensor:
        """What training adds to the logit of an item of that propensity."""
        return theta.clamp_min(self.clip).log_().mul_(self.strength)
