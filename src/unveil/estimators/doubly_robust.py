"""The doubly robust form, as far as a log of events supports it: imputed relevance plus a weighted residual.

Shapes: N training events, M slots, V items.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import Positive, Share
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.inverse import InversePropensity
from unveil.estimators.losses import ByRows

_NONE = -1


@dataclass(frozen=True, eq=False)
class Transitions:
    """P(i | the item before it) = (n(before, i) + k · share of i) / (n(before) + k), counted in the training part.

    A slot's own event is left out of n, or it would be imputed from itself. Without an item before it, only the shares.
    """

    count_VV: Any  # sparse: how often i came right after j
    total_V: NDArray[np.int64]  # how often anything did
    share_V: NDArray[np.float32]
    before_E: NDArray[np.int64]  # the item before each row of the log, −1 where there is none
    backing: float

    @classmethod
    def of(cls, train: Sequences, backing: float) -> Self:
        item_N, V = train.item_N.astype(np.int64), train.n_items
        before_N = np.concatenate([[_NONE], item_N[:-1]])
        before_N[train.offset_U1[:-1][train.length_U > 0]] = _NONE
        follows_N = before_N != _NONE
        pair = (np.ones(int(follows_N.sum()), np.float32), (before_N[follows_N], item_N[follows_N]))
        count_VV = sparse.csr_matrix(pair, shape=(V, V))
        before_E = np.full(int(train.event_N.max(initial=_NONE)) + 1, _NONE)
        before_E[train.event_N] = before_N
        share_V = (np.bincount(item_N, minlength=V) / max(len(item_N), 1)).astype(np.float32)
        return cls(count_VV, np.bincount(before_N[follows_N], minlength=V), share_V, before_E, backing)

    def __call__(self, slots: Slots) -> Tensor:
        before_M, item_M = self._before(slots), slots.item_M.cpu().numpy()
        known_M = before_M != _NONE
        count_M = np.float32(self.backing) * self.share_V[item_M]
        if known_M.any():  # of no pairs scipy gives a sparse matrix, not numbers
            count_M[known_M] += np.asarray(self.count_VV[before_M[known_M], item_M[known_M]]).ravel()
        count_M[known_M] -= 1  # the slot's own event
        return torch.from_numpy(count_M / self._total(before_M)).to(slots.item_M.device)

    def of_all(self, slots: Slots) -> Tensor:
        """m_MV of all items, each row of sum 1."""
        before_M, item_M = self._before(slots), slots.item_M.cpu().numpy()
        known_M = before_M != _NONE
        count_MV = np.tile(np.float32(self.backing) * self.share_V, (len(slots), 1))
        count_MV[known_M] += self.count_VV[before_M[known_M]].toarray()
        count_MV[known_M, item_M[known_M]] -= 1  # the slot's own event
        count_MV /= self._total(before_M)[:, None]
        return torch.from_numpy(count_MV).to(slots.item_M.device)

    def _total(self, before_M: NDArray[np.int64]) -> NDArray[np.float32]:
        """n(before) + k, the slot's own event left out."""
        known_M = before_M != _NONE
        total_M = np.full(len(before_M), self.backing, np.float32)
        total_M[known_M] += self.total_V[before_M[known_M]] - 1
        return total_M

    def _before(self, slots: Slots) -> NDArray[np.int64]:
        if slots.event_M is None:
            return np.full(len(slots), _NONE)
        event_M = slots.event_M.cpu().numpy()
        inside_M = event_M < len(self.before_E)
        return np.where(inside_M, self.before_E[np.where(inside_M, event_M, 0)], _NONE)


@register
@dataclass(frozen=True, eq=False)
class DoublyRobust(InversePropensity):
    """a_i = m_i + O_i (Y_i − m_i) / θ_sit in the place of Y_i / θ_sit (eq. of L_ITPS), m the imputed relevance.

    With O of every item at every slot, its mean is right if θ is or m is. A log of events has O of the chosen item
    alone: the mean is P(event) m_i + (θ/θ̂) μ_i (1 − m_i) with μ_i = P(i chosen | exposed). That is ∝ m where m is right
    and certain (0 or 1); where θ̂ is right it is off by m_i (P(event) − μ_i), which `trust` keeps small. m is `trust`
    times the probability of `Transitions`, which is fitted before.
    """

    trust: Share = 0.2  # the sum of m over the items; 0: ITPS
    backing: Positive = 10.0  # of the imputation: events' worth of the items' shares behind each item

    name: ClassVar[str] = "doubly-robust"
    needs: ClassVar[Need] = "temporal"
    imputation: Transitions = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        object.__setattr__(self, "imputation", Transitions.of(train, self.backing))
        return self

    def __call__(self, slots: Slots) -> Signal:
        m_M, w_M = self.imputation(slots).mul_(self.trust), self.inverse(slots)
        residual_M = doubly_robust(m_M, torch.ones_like(m_M), torch.ones_like(m_M), 1 / w_M) - m_M
        return Signal(slots.item_M, residual_M, imputed_MV=ByRows(slots, self.imputed))

    def imputed(self, slots: Slots) -> Tensor:
        return self.imputation.of_all(slots).mul_(self.trust)


def doubly_robust(imputed: Tensor, chosen: Tensor, shown: Tensor, theta: Tensor) -> Tensor:
    """a = m + O (Y − m) / θ."""
    return imputed + shown * (chosen - imputed) / theta
