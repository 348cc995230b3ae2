"""A loss on the impressions of a log, beside or instead of the softmax: clicked against shown and not clicked.

Shapes: M slots, P impressions without a click, N rows of the log.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.errors import AtLeastOne, NotNegative, UnveilError, check_range
from unveil.estimators.base import Checked, Need, Signal, constant, register
from unveil.estimators.losses import SKIP_LOSSES, Skips
from unveil.propensity.impressions import skips_before_clicks


@register
@dataclass(frozen=True, eq=False)
class ImpressionLoss(Checked):
    """softmax · (eq. of L_Cloze) + weight · (1/N) Σ_m l_m, where J_m was shown, and not clicked, before click m.

    pointwise: l_m = −log σ(f_i) − Σ_{j in J_m} log(1 − σ(f_j)), the likelihood of P(click | shown) = σ(f).
    pairwise: l_m = −Σ_{j in J_m} log σ(f_i − f_j) with the clicked item i (BPR; S. Rendle et al., UAI 2009).
    J_m is what the user was shown since the click before, so it has the history of slot m: one forward pass for both.
    Assumes that whoever is shown an item clicks it or not by itself, whatever is shown before and after.
    """

    log: Interactions
    loss: str = "pairwise"
    weight: NotNegative = 0.3
    softmax: NotNegative = 1.0  # 0: the loss on impressions alone
    most: AtLeastOne = 50  # of J_m, the last ones

    name: ClassVar[str] = "impressions"
    needs: ClassVar[Need] = "impressions"
    item_P: Tensor = field(init=False, repr=False)
    start_N1: Tensor = field(init=False, repr=False)  # where those before row n of the log begin

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self.loss in SKIP_LOSSES, f"{self.name}.loss", self.loss, f"one of {', '.join(SKIP_LOSSES)}")
        check_range(self.weight + self.softmax > 0, f"{self.name}.weight, softmax", 0, "one of them above 0")

    def fit(self, train: Sequences) -> Self:
        skip_P, click_P = skips_before_clicks(self.log, train)
        if not len(skip_P):
            problem = f"the estimator {self.name!r} finds no impression without a click before a click of training"
            raise UnveilError(problem, hint="Use a longer log, or 'naive', which needs no impressions.")
        order_P = np.argsort(click_P, kind="stable")
        start_N1 = np.searchsorted(click_P[order_P], np.arange(len(self.log) + 1))
        object.__setattr__(self, "item_P", torch.from_numpy(self.log.item[skip_P[order_P]].astype(np.int64)))
        object.__setattr__(self, "start_N1", torch.from_numpy(start_N1))
        return self

    def __call__(self, slots: Slots) -> Signal:
        assert slots.event_M is not None
        event_M = slots.event_M.cpu()
        stop_M = self.start_N1[event_M + 1]
        count_M = (stop_M - self.start_N1[event_M]).clamp_max(self.most)
        slot_P = torch.arange(len(slots)).repeat_interleave(count_M)
        at_P = torch.arange(len(slot_P)) + (stop_M - count_M.cumsum(0))[slot_P]
        skips = Skips(slot_P, self.item_P[at_P], self.loss, self.weight).to(slots.item_M.device)
        return Signal(slots.item_M, constant(slots, self.softmax), skips=skips)
