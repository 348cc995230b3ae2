"""Exposure-corrected softmax with as much of the correction as the log itself bears out."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, register
from unveil.estimators.learning import events
from unveil.estimators.learnt.evidence import borne_out
from unveil.estimators.offset import PropensityOffset

#: Training events over which an item's mean is taken, evenly spread; fewer where a row of all items is long.
_EVENTS, _CELLS = 1024, 1 << 24


@register
@dataclass(frozen=True, eq=False)
class Tempered(PropensityOffset):
    """P(i | s, t) ∝ θ_sit^τ / θ_i^(1 − static) · exp f_i, θ_i the mean of θ_sit^τ over the training events.

    τ is the share of the correction that the log bears out (`borne_out`): 1 where exposure moves choices as θ says, 0
    where it does not at all. An item's mean exposure cannot be told from its appeal by any log of events, so it is left
    in f unless `static` says otherwise: a popularity in the place of θ then takes no relevance away.

    τ is consistent for P ∝ θ_sit^τ e^f_si with f that keeps still while θ moves, and f is found up to each item's mean.
    The mean is over all users: where θ is personal, what a user's own θ differs from it by is corrected as well, moving
    or not. `strength` multiplies what was found.
    """

    static: float = 0.0  # how much of an item's mean exposure is taken for exposure; 1: all, as in corrected

    name: ClassVar[str] = "tempered"
    needs: ClassVar[Need] = "temporal"
    tau: float = field(init=False, default=1.0)
    mean_V: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(0 <= self.static <= 1, f"{self.name}.static", self.static, "between 0 and 1")

    def fit(self, train: Sequences) -> Self:
        """Find τ and the items' mean θ^τ."""
        every = events(train)
        some = min(len(every), _EVENTS, max(1, _CELLS // train.n_items))
        spread_M = torch.from_numpy(np.linspace(0, len(every) - 1, some).astype(np.int64))
        object.__setattr__(self, "tau", borne_out(self.propensity, train, self.clip))
        shift_MV = self.shift(self.propensity.of_all(every.at(spread_M)))
        object.__setattr__(self, "mean_V", shift_MV.logsumexp(0) - np.log(some))
        return self

    def offset(self, slots: Slots) -> Tensor:
        """The shift of every item's logit from that of its mean."""
        return super().offset(slots) - (1 - self.static) * self.mean_V.to(slots.item_M.device)

    def shift(self, theta: Tensor) -> Tensor:
        """τ · strength · log θ."""
        return self.tau * super().shift(theta)
