"""Sampled softmax: items drawn once for a batch, each with a known probability.

Shapes: M slots, D width, V items, K items drawn.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import AtLeastOne, Share
from unveil.propensity.base import OF_EVENTS, PropensityModel

_STREAM = 7  # keeps these draws apart from others of the same batch


@dataclass(frozen=True, eq=False)
class Sample:
    """K items that stand for all."""

    item_K: Tensor
    offset_MK: Tensor  # added to their logits in training, −log π_j included; one row if the same at all slots
    own_M: Tensor  # added to the targets' logits, which are always there: no π for them

    def to(self, device: torch.device | str) -> Self:
        return type(self)(*(part.to(device) for part in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws about K of the V items without replacement, item j with probability π_j > 0.

    E[Σ_{j drawn} x_j / π_j] = Σ_j x_j (D. Horvitz and D. Thompson, 1952). With K = V all items are drawn.
    """

    chance_V: NDArray[np.float64]

    @classmethod
    def by_count(cls, count_V: NDArray[Any], negatives: int, power: float) -> Self:
        """π_j ∝ (count_j + 1)^power where that is below 1; certain where it is not."""
        share_V, certain_V = (count_V + 1.0) ** power, np.zeros(len(count_V), bool)
        while True:
            left = max(min(negatives, len(count_V)) - int(certain_V.sum()), 0)
            chance_V = np.where(certain_V, 1.0, share_V * (left / max(share_V[~certain_V].sum(), 1e-300)))
            if not (over_V := (chance_V >= 1) & ~certain_V).any():
                return cls(chance_V)
            certain_V |= over_V

    def draw(self, lot: tuple[int, ...]) -> NDArray[np.int64]:
        """The items of a batch, by systematic sampling: steps of 1 over Σ π in random order, from a random start."""
        rng = np.random.default_rng([*lot, _STREAM])
        order_V = rng.permutation(len(self.chance_V))
        tooth_V = np.floor(np.cumsum(self.chance_V[order_V]) + rng.random())
        hit_V = (np.diff(tooth_V, prepend=0.0) > 0) | (self.chance_V[order_V] >= 1)
        return np.sort(order_V[hit_V])


def sampled_loss(
    h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, target_M: Tensor, weight_M: Tensor, sample: Sample
) -> Tensor:
    """−Σ_m w_m log (e^z_t / Ẑ_m) with Ẑ_m = e^z_t + Σ_{j drawn, j ≠ t} e^(z_j − log π_j), and z = f + offset.

    E[Ẑ] = Z: loss and gradient tend to those of the softmax over all items, and equal them when all are drawn.
    """
    K = sample.item_K
    z_MK = torch.addmm(bias_V.index_select(0, K), h_MD, F.embedding(K, table_VD).T) + sample.offset_MK.to(h_MD.dtype)
    z_MK = z_MK.masked_fill(target_M[:, None] == K, -torch.inf)
    own_M = (h_MD * F.embedding(target_M, table_VD)).sum(1) + bias_V.index_select(0, target_M)
    z_MK1 = torch.cat([(own_M + sample.own_M.to(h_MD.dtype))[:, None], z_MK], 1)
    first_M = torch.zeros_like(target_M)
    return (weight_M.detach().to(h_MD.dtype) * F.cross_entropy(z_MK1, first_M, reduction="none")).sum()


#: Pairs of slot and item whose θ is computed at once; items for each one drawn above which pairs are quicker than all.
_PAIRS, _FEW = 1 << 18, 8


@dataclass(frozen=True, eq=False)
class OverSample:
    """`negatives` items a batch, all slots sharing them, item j with a chance ∝ (training events of j + 1)^power.

    They depend on (seed, epoch, nth batch) alone: the same in a run that is resumed, or divided over processes.
    """

    negatives: AtLeastOne = 256
    power: Share = 0.75

    sampler: Sampler = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        object.__setattr__(self, "sampler", Sampler.by_count(train.count_V, self.negatives, self.power))
        return self

    def drawn(self, slots: Slots) -> tuple[Tensor, Tensor]:
        """item_K of the slots' batch, and log π_K."""
        item_K = self.sampler.draw(slots.lot)
        log_chance_K = np.log(self.sampler.chance_V[item_K]).astype(np.float32)
        return torch.from_numpy(item_K).to(slots.item_M.device), torch.from_numpy(log_chance_K).to(slots.item_M.device)


def theta_of_some(propensity: PropensityModel, slots: Slots, item_K: Tensor, n_items: int) -> Tensor:
    """θ_MK of some items at the slots; pair by pair where all items would be far more than these."""
    if n_items <= _FEW * len(item_K) or propensity.source in OF_EVENTS:  # they know the chosen item alone
        return propensity.of_all(slots)[:, item_K]
    rows = max(1, _PAIRS // len(item_K))
    parts = []
    for at in range(0, max(len(slots), 1), rows):
        part = slots.part(at, at + rows)
        every = part.at(torch.arange(len(part), device=item_K.device).repeat_interleave(len(item_K)))
        parts.append(propensity(replace(every, item_M=item_K.repeat(len(part)))).reshape(-1, len(item_K)))
    return torch.cat(parts)
