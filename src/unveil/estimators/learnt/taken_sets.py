"""Whether a user ever takes an item, by weighted factors of the sets of what users took.

The matrix is 1 where s ever took i; all else is 0 with little weight (Y. Hu, Y. Koren and C. Volinsky, ICDM 2008).
Shapes: U users, V items, K width; A and B are users and items or the reverse, R some rows of A.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from unveil.data.sequences import Sequences

Factors = NDArray[np.float64]

#: Rounds of alternation, after which scores hardly move; and numbers of the equations that are held at once.
_SWEEPS, _NUMBERS = 8, 1 << 23


@dataclass(frozen=True, eq=False)
class TakenSets:
    """F_si = p_s · q_i with Σ_{i in S_s} (1 − F_si)² + unseen · Σ_{i not in S_s} F_si² + penalty · (|p|² + |q|²) least.

    S_s is what s took in the training part, however often. Each side is solved exactly given the other.
    """

    p_UK: Tensor
    q_VK: Tensor

    @classmethod
    def of(cls, train: Sequences, *, unseen: float, width: int, penalty: float, seed: int) -> Self:
        """By alternating least squares from small random item factors."""
        taken_UV = taken(train)
        q_VK = 0.1 * np.random.default_rng(seed).standard_normal((train.n_items, width))
        for _ in range(_SWEEPS):
            p_UK = solved(taken_UV, q_VK, unseen, penalty)
            q_VK = solved(taken_UV.T.tocsr(), p_UK, unseen, penalty)
        return cls(*(torch.from_numpy(side.astype(np.float32)) for side in (p_UK, q_VK)))

    def __call__(self, user_M: Tensor) -> Tensor:
        """F_MV of these users."""
        p_UK, q_VK = self.p_UK.to(user_M.device), self.q_VK.to(user_M.device)
        return p_UK[user_M] @ q_VK.T


def taken(train: Sequences) -> Any:
    """Sparse, 1 where s ever took i."""
    pair = (np.ones(len(train)), (train.user_N, train.item_N))
    count_UV = sparse.csr_matrix(pair, shape=(train.n_users, train.n_items))
    count_UV.data[:] = 1.0
    return count_UV


def solved(taken_AB: Any, b_BK: Factors, unseen: float, penalty: float) -> Factors:
    """One side given the other: (c Σ_j b_j b_j' + (1 − c) Σ_{j taken} b_j b_j' + λ 1) a = Σ_{j taken} b_j."""
    width = b_BK.shape[1]
    squares_BKK = (b_BK[:, :, None] * b_BK[:, None, :]).reshape(len(b_BK), -1)
    common_KK = unseen * (b_BK.T @ b_BK) + penalty * np.eye(width)
    a_AK, rows = np.empty((taken_AB.shape[0], width)), max(1, _NUMBERS // width**2)
    for start in range(0, len(a_AK), rows):
        part = taken_AB[start : start + rows]
        left_RKK = common_KK + (1 - unseen) * (part @ squares_BKK).reshape(-1, width, width)
        a_AK[start : start + rows] = np.linalg.solve(left_RKK, (part @ b_BK)[:, :, None])[:, :, 0]
    return a_AK
