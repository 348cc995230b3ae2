"""Some items in the place of all: drawn once for a batch, each with a known chance, and a softmax over them.

Shapes: M slots, D width, V items, K items drawn.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

#: Keeps what is drawn here apart from all else that is drawn by the lot of a batch.
_STREAM = 7


@dataclass(frozen=True, eq=False)
class Sample:
    """K items that stand for all. `offset_MK` is what training adds to their logits, −log π_j included; one row if
    it is alike at all slots. `own_M` is what it adds to the targets', which are always there: no π for them.
    """

    item_K: Tensor
    offset_MK: Tensor
    own_M: Tensor

    def to(self, device: torch.device | str) -> Self:
        """The same sample on a device."""
        return type(self)(self.item_K.to(device), self.offset_MK.to(device), self.own_M.to(device))


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws about K of the V items without replacement; item j is among them with probability π_j > 0.

    1/π_j then makes up for those that are not, without bias (D. Horvitz and D. Thompson, 1952): the mean of
    Σ_{j drawn} x_j / π_j is Σ_j x_j. With K = V nothing is left to chance.
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
        """The items of a lot: a comb of step 1 and random place laid over the chances, the items in random order."""
        rng = np.random.default_rng([*lot, _STREAM])
        order_V = rng.permutation(len(self.chance_V))
        tooth_V = np.floor(np.cumsum(self.chance_V[order_V]) + rng.random())
        hit_V = (np.diff(tooth_V, prepend=0.0) > 0) | (self.chance_V[order_V] >= 1)
        return np.sort(order_V[hit_V])


def sampled_loss(
    h_MD: Tensor, table_VD: Tensor, bias_V: Tensor, target_M: Tensor, weight_M: Tensor, sample: Sample
) -> Tensor:
    """−Σ_m w_m log (e^z_t / Ẑ_m) with Ẑ_m = e^z_t + Σ_{j drawn, j ≠ t} e^(z_j − log π_j), and z = f + offset.

    E[Ẑ] = Z: the target is there for sure and the others stand for each other. So the loss and its slope tend to those
    of the softmax over all items as more are drawn, and are theirs when all are.
    """
    K = sample.item_K
    z_MK = torch.addmm(bias_V.index_select(0, K), h_MD, F.embedding(K, table_VD).T) + sample.offset_MK.to(h_MD.dtype)
    z_MK = z_MK.masked_fill(target_M[:, None] == K, -torch.inf)
    own_M = (h_MD * F.embedding(target_M, table_VD)).sum(1) + bias_V.index_select(0, target_M)
    z_MK1 = torch.cat([(own_M + sample.own_M.to(h_MD.dtype))[:, None], z_MK], 1)
    first_M = torch.zeros_like(target_M)
    return (weight_M.detach().to(h_MD.dtype) * F.cross_entropy(z_MK1, first_M, reduction="none")).sum()
