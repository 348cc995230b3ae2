"""What sampled softmaxes share: negatives drawn once for a batch, more often the more often they are taken.

Shapes: M slots, V items, K items drawn, P pairs of the two.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.losses.sample import Sampler
from unveil.propensity.base import OF_EVENTS, PropensityModel

#: Pairs of slot and item whose θ is asked for at once; and how many items there may be for each one that is drawn
#: before it takes longer to ask for all than for pairs.
_PAIRS, _FEW = 1 << 18, 8


@dataclass(frozen=True, eq=False)
class OverSample:
    """`negatives` items a batch, all slots sharing them, item j with a chance ∝ (training events of j + 1)^power.

    Which ones depends on the lot of the batch, (seed, epoch, nth), and on nothing else: a run that is resumed, or
    divided over processes, sees the same.
    """

    negatives: int = 256
    power: float = 0.75

    name: ClassVar[str]
    sampler: Sampler = field(init=False, repr=False)

    def __post_init__(self) -> None:
        refuse_unless(self.negatives >= 1, f"{self.name}.negatives", self.negatives, "at least 1")
        refuse_unless(0 <= self.power <= 1, f"{self.name}.power", self.power, "between 0 and 1")

    def fit(self, train: Sequences) -> Self:
        """Count."""
        object.__setattr__(self, "sampler", Sampler.by_count(train.count_V, self.negatives, self.power))
        return self

    def drawn(self, slots: Slots) -> tuple[Tensor, Tensor]:
        """item_K of the slots' batch, and log π_K."""
        item_K = self.sampler.draw(slots.lot)
        log_chance_K = np.log(self.sampler.chance_V[item_K]).astype(np.float32)
        return torch.from_numpy(item_K).to(slots.item_M.device), torch.from_numpy(log_chance_K).to(slots.item_M.device)


def theta_of_some(propensity: PropensityModel, slots: Slots, item_K: Tensor, n_items: int) -> Tensor:
    """θ_MK of some items at the slots; pair by pair where all items would be far more than these."""
    if n_items <= _FEW * len(item_K) or propensity.source in OF_EVENTS:  # they know of the taken item alone
        return propensity.of_all(slots)[:, item_K]
    rows = max(1, _PAIRS // len(item_K))
    parts = [_pairs(slots.part(at, at + rows), item_K) for at in range(0, max(len(slots), 1), rows)]
    return torch.cat([propensity(pairs_P).reshape(-1, len(item_K)) for pairs_P in parts])


def _pairs(slots: Slots, item_K: Tensor) -> Slots:
    """Each slot with each of the items."""
    M, K = len(slots), len(item_K)
    user_P, step_P = (index_M.repeat_interleave(K) for index_M in (slots.user_M, slots.step_M))
    event_P = None if slots.event_M is None else slots.event_M.repeat_interleave(K)
    return replace(slots, user_M=user_P, item_M=item_K.repeat(M), step_M=step_P, event_M=event_P)
