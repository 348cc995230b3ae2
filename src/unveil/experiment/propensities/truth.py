"""What is true at some slots of a world: exposure, what is taken, and what would be. Shapes: M slots, V items."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.propensity.factors import sigmoid
from unveil.simulation.world import World

Values = NDArray[np.float64]

#: Numbers in one table of all slots and items: not more than this are looked at.
_NUMBERS = 1 << 22
#: What is taken less often than this is not told from never.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Truth:
    """θ of every item at the slots, the relevance logits, and P(taken) by a user who takes the best of what is seen."""

    slots: Slots
    theta_MV: Values
    logit_MV: Values

    @classmethod
    def of(cls, world: World, train: Sequences, most: int, rng: np.random.Generator) -> "Truth":
        """At training events drawn at random."""
        count = min(len(train), most, max(1, _NUMBERS // max(1, world.n_items)))
        at_M = np.sort(rng.choice(len(train), count, replace=False))
        columns = (train.user_N, train.item_N, train.step_N, train.event_N)
        user_M, item_M, step_M, event_M = (column[at_M].astype(np.int64) for column in columns)
        slots = Slots(*(torch.from_numpy(index) for index in (user_M, item_M, step_M, event_M)))
        theta_MV = np.maximum(world.exposure(user_M, step_M).astype(np.float64), np.finfo(np.float32).tiny)
        return cls(slots, theta_MV, world.relevance_logits.logits(user_M, step_M).astype(np.float64))

    def log_taken(self) -> Values:
        """log P(i taken) = log θ_i + Σ_{j better} log(1 − θ_j) + log γ_i."""
        order_MV = np.argsort(-self.logit_MV, axis=1, kind="stable")
        miss_MV = np.log1p(-np.minimum(np.take_along_axis(self.theta_MV, order_MV, 1), 1 - 1e-12))
        missed_MV = np.empty_like(miss_MV)
        np.put_along_axis(missed_MV, order_MV, np.cumsum(miss_MV, axis=1) - miss_MV, 1)
        pleased_MV = np.log(sigmoid(self.logit_MV.astype(np.float32)).astype(np.float64) + _TINY)
        return np.asarray(np.log(self.theta_MV) + missed_MV + pleased_MV)

    def top(self, k: int) -> NDArray[np.int64]:
        """The k most relevant items of each slot."""
        return np.argsort(-self.logit_MV, axis=1, kind="stable")[:, :k]
