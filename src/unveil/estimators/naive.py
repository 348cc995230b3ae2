"""The baseline: every interaction counts alike; the same over sampled items; and the ideal loss of the ground truth."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.slots import Slots
from unveil.estimators.base import Checked, Need, OverSample, Sample, Signal, constant, register
from unveil.propensity.known import TrueWorld


@register
@dataclass(frozen=True)
class Naive(Checked):
    """BERT4Rec's own loss (eq. of L_Cloze): the target is the item of the log and w = 1.

    Biased whenever θ is below 1 for something that may be chosen (Proposition 1).
    """

    name: ClassVar[str] = "naive"
    needs: ClassVar[Need] = "nothing"

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, constant(slots))


@register
@dataclass(frozen=True, eq=False)
class NaiveSampled(OverSample, Checked):
    """naive (eq. of L_Cloze) over the target and a sample: P(t) = e^f_t / (e^f_t + Σ_{drawn, j ≠ t} e^f_j / π_j).

    Tends to naive as more are drawn, with its bias (Proposition 1).
    """

    name: ClassVar[str] = "naive-sampled"
    needs: ClassVar[Need] = "nothing"

    def __call__(self, slots: Slots) -> Signal:
        item_K, log_chance_K = self.drawn(slots)
        sample = Sample(item_K, -log_chance_K[None], constant(slots, 0.0))
        return Signal(slots.item_M, constant(slots), sample=sample)


_BLOCK, _UNKNOWN = 1024, -1  # slots whose best item is looked up at a time; the mark of one not looked up yet


@register
@dataclass(frozen=True, eq=False)
class Ideal(Checked):
    """Target argmax_i γ_sit, w = γ_sit of it (eq. of L_ideal): a rational user aware of all items.

    Each slot's target is found once and kept: U × T numbers of each kind.
    """

    world: TrueWorld

    name: ClassVar[str] = "ideal"
    needs: ClassVar[Need] = "truth"
    _target_UT: NDArray[np.int64] = field(init=False, repr=False)
    _gamma_UT: NDArray[np.float32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = (self.world.n_users, self.world.n_steps)
        object.__setattr__(self, "_target_UT", np.full(shape, _UNKNOWN))
        object.__setattr__(self, "_gamma_UT", np.empty(shape, np.float32))

    def __call__(self, slots: Slots) -> Signal:
        user_M, step_M = slots.user_M.cpu().numpy(), slots.step_M.cpu().numpy()
        new = np.flatnonzero(self._target_UT[user_M, step_M] == _UNKNOWN)
        for start in range(0, len(new), _BLOCK):
            user_B, step_B = (index_M[new[start : start + _BLOCK]] for index_M in (user_M, step_M))
            target_B = self.world.ideal_target(user_B, step_B)
            self._target_UT[user_B, step_B] = target_B
            self._gamma_UT[user_B, step_B] = self.world.relevance_of(user_B, target_B, step_B)
        target_M = torch.from_numpy(self._target_UT[user_M, step_M])
        return Signal(target_M, torch.from_numpy(self._gamma_UT[user_M, step_M])).to(slots.item_M.device)
