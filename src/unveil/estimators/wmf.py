"""Targets from the set of items that a user ever chose, by weighted matrix factorisation; with and without ratings.

The matrix is 1 where s ever chose i; all else is 0 with little weight (Y. Hu, Y. Koren and C. Volinsky, ICDM 2008).
Shapes: U users, V items, K width; A and B are users and items or the reverse, R some rows of A; P pairs (user, item).
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from unveil.data.interactions import Interactions, Sequences, every_rating
from unveil.data.slots import Slots
from unveil.errors import AtLeastOne, NotNegative, Positive, Share, UnveilError, UpToOne
from unveil.estimators.base import BLOCK, Checked, Need, Signal, constant, register
from unveil.estimators.losses import ByRows
from unveil.propensity.factors import shrunk_means

Values = NDArray[np.float64]

#: Sweeps of alternating least squares; and numbers of the equations that are held at once.
_SWEEPS, _NUMBERS = 8, 1 << 23


@dataclass(frozen=True, eq=False)
class InteractionSets:
    """F_si = p_s · q_i with Σ_{i in S_s} (1 − F_si)² + unseen · Σ_{i not in S_s} F_si² + penalty · (|p|² + |q|²) least.

    S_s is what s chose in the training part, however often. Each side is solved exactly given the other.
    """

    p_UK: Tensor
    q_VK: Tensor

    @classmethod
    def of(cls, train: Sequences, *, unseen: float, width: int, penalty: float, seed: int) -> Self:
        chosen_UV = interacted(train)
        q_VK = 0.1 * np.random.default_rng(seed).standard_normal((train.n_items, width))
        for _ in range(_SWEEPS):
            p_UK = solve(chosen_UV, q_VK, unseen, penalty)
            q_VK = solve(chosen_UV.T.tocsr(), p_UK, unseen, penalty)
        return cls(*(torch.from_numpy(side.astype(np.float32)) for side in (p_UK, q_VK)))

    def __call__(self, user_M: Tensor) -> Tensor:
        p_UK, q_VK = self.p_UK.to(user_M.device), self.q_VK.to(user_M.device)
        return p_UK[user_M] @ q_VK.T


def interacted(train: Sequences) -> Any:
    """Sparse, 1 where s ever chose i."""
    pair = (np.ones(len(train)), (train.user_N, train.item_N))
    count_UV = sparse.csr_matrix(pair, shape=(train.n_users, train.n_items))
    count_UV.data[:] = 1.0
    return count_UV


def solve(chosen_AB: Any, b_BK: Values, unseen: float, penalty: float) -> Values:
    """One side given the other: (c Σ_j b_j b_j' + (1 − c) Σ_{j chosen} b_j b_j' + λ 1) a = Σ_{j chosen} b_j."""
    width = b_BK.shape[1]
    squares_BKK = (b_BK[:, :, None] * b_BK[:, None, :]).reshape(len(b_BK), -1)
    common_KK = unseen * (b_BK.T @ b_BK) + penalty * np.eye(width)
    a_AK, rows = np.empty((chosen_AB.shape[0], width)), max(1, _NUMBERS // width**2)
    for start in range(0, len(a_AK), rows):
        part = chosen_AB[start : start + rows]
        left_RKK = common_KK + (1 - unseen) * (part @ squares_BKK).reshape(-1, width, width)
        a_AK[start : start + rows] = np.linalg.solve(left_RKK, (part @ b_BK)[:, :, None])[:, :, 0]
    return a_AK


#: Rounds of alternation; the weight of the mean behind each user and item; the most that all ratings of one pair weigh.
_ROUNDS, _BACKING, _MOST = 8, 3.0, 3.0


def item_ratings(train: Sequences, rating_N: Values) -> Values:
    """b_V of rating ≈ mean + a_s + b_i, shrunk, in standard deviations of the ratings; 0 for items without ratings."""
    V = train.n_items
    key_P, nth_N, count_P = np.unique(
        train.user_N.astype(np.int64) * V + train.item_N, return_inverse=True, return_counts=True
    )
    z_N = (rating_N - rating_N.mean()) / max(float(rating_N.std()), 1e-9)
    z_P, weight_P = np.bincount(nth_N, z_N) / count_P, count_P / (1 + count_P / _MOST)
    user_P, item_P = key_P // V, key_P % V
    a_U, b_V = np.zeros(train.n_users), np.zeros(V)
    for _ in range(_ROUNDS):
        a_U = shrunk_means(user_P, z_P - b_V[item_P], weight_P, train.n_users, _BACKING)
        b_V = shrunk_means(item_P, z_P - a_U[user_P], weight_P, V, _BACKING)
    return b_V


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class WMFDistilled(Checked):
    """Predicts P(i | s) ∝ exp(F_si / temperature), F_si whether s ever chooses i, beside the item of the log.

    Whether s ever chose i depends less on exposure than how often: 1 − (1 − θ)^N is nearer to 1 for all than θ is. F is
    learnt from the sets of chosen items (`InteractionSets`); the item of the log (eq. of L_Cloze) has the weight
    1 − `trust`. The sets are free of θ if every user sees at some step all that they would choose; the order within a
    set is not.
    """

    unseen: UpToOne = 0.03  # the weight of an item that s never chose, against 1 for one that s chose
    width: AtLeastOne = 16
    penalty: Positive = 1.0
    temperature: Positive = 0.1
    trust: Share = 0.5  # 0: the item of the log alone
    seed: int = 0

    name: ClassVar[str] = "wmf-distilled"
    needs: ClassVar[Need] = "nothing"
    sets: InteractionSets = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        sets = InteractionSets.of(train, unseen=self.unseen, width=self.width, penalty=self.penalty, seed=self.seed)
        object.__setattr__(self, "sets", sets)
        return self

    def __call__(self, slots: Slots) -> Signal:
        return Signal(slots.item_M, constant(slots, 1 - self.trust), imputed_MV=ByRows(slots, self.imputed))

    def imputed(self, slots: Slots) -> Tensor:
        return self.preference(slots.user_M).mul_(self.trust)

    def preference(self, user_M: Tensor) -> Tensor:
        return torch.softmax(self.scores(user_M) / self.temperature, 1)

    def scores(self, user_M: Tensor) -> Tensor:
        return self.sets(user_M)


@register
@dataclass(frozen=True, eq=False)
class WMFDistilledRated(WMFDistilled):
    """P(i | s) ∝ exp((F_si + liking · b_i) / temperature), where wmf-distilled has exp(F_si / temperature).

    b_i is what i adds to the ratings of those who chose it (`item_ratings`), in standard deviations of the ratings:
    free of θ if who chooses an item does not depend on how they would rate it.

    An item chosen n_i times, against m_i = Σ_s N_s P(i | s) by preference alone, was exposed the more the larger
    n_i / m_i is: `balance` · log of that is added to the logits of the log's own items in training, not in serving.
    """

    log: Interactions
    liking: NotNegative = 0.9
    balance: NotNegative = 0.5  # 0: overexposure is mistaken for preference

    name: ClassVar[str] = "wmf-distilled-rated"
    needs: ClassVar[Need] = "ratings"
    b_V: Tensor = field(init=False, repr=False)
    shift_V: Tensor = field(init=False, repr=False)

    def fit(self, train: Sequences) -> Self:
        object.__setattr__(self, "b_V", torch.from_numpy(item_ratings(train, self._ratings(train)).astype(np.float32)))
        super().fit(train)
        count_V = torch.from_numpy(train.count_V.astype(np.float32))
        object.__setattr__(self, "shift_V", self.balance * torch.log((count_V + 1) / (self._expected(train) + 1)))
        return self

    def __call__(self, slots: Slots) -> Signal:
        return replace(super().__call__(slots), offset_MV=ByRows(slots, self.offset) if self.balance else None)

    def scores(self, user_M: Tensor) -> Tensor:
        return super().scores(user_M) + self.liking * self.b_V.to(user_M.device)

    def offset(self, slots: Slots) -> Tensor:
        return self.shift_V.to(slots.item_M.device).expand(len(slots), -1)

    def _expected(self, train: Sequences) -> Tensor:
        """m_V = Σ_s N_s P(i | s), a block of users at a time."""
        count_U = torch.from_numpy(train.length_U.astype(np.float32))
        expected_V = torch.zeros(train.n_items)
        for user_M in torch.split(torch.arange(len(count_U)), BLOCK):
            expected_V += count_U[user_M] @ self.preference(user_M)
        return expected_V

    def _ratings(self, train: Sequences) -> Values:
        rating_N = every_rating(self.log, train, f"the estimator {self.name!r}", "'wmf-distilled', which needs none")
        if rating_N.min() == rating_N.max():
            problem = f"the estimator {self.name!r} needs ratings that differ, and all are alike"
            raise UnveilError(problem, found=float(rating_N.min()), hint="Use 'wmf-distilled', which needs none.")
        return rating_N
