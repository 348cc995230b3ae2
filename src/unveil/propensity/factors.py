"""Factors: a number for every (user, item, step) from three small tables; and propensities estimated as factors.

Shapes: U users, V items, T steps, K factors, B slots requested or cells of a batch, M (user, item, step) triples or
slots, N cells (user, item, block) that occur, E events, C blocks, S items of a sample.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import Parameter

from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import AtLeastOne, NotNegative, UnveilError, check_ranges
from unveil.processes import threads
from unveil.propensity.base import Kind, as_theta, indices

Floats = NDArray[np.float32]
Indices = NDArray[Any]
Index = NDArray[np.int64]
Values = NDArray[np.float64]

#: Rows of one matrix product. Every product has this shape: a logit has the same bits however many are requested.
TILE = 64
_TRIPLES = 1 << 16  # Triples looked up at once


@dataclass(frozen=True, eq=False)
class Factors:
    """logit_sit = Σ_k P_sk · Q_ik · W_tk: users P, items Q, steps W."""

    P_UK: Floats
    Q_VK: Floats
    W_TK: Floats

    def __post_init__(self) -> None:
        widths = {table.shape[1] for table in (self.P_UK, self.Q_VK, self.W_TK)}
        if len(widths) != 1:
            raise ValueError(f"factor tables of different widths: {sorted(widths)}")

    @classmethod
    def of(cls, P_UK: NDArray[Any], Q_VK: NDArray[Any], W_TK: NDArray[Any]) -> Self:
        return cls(*(np.ascontiguousarray(table, dtype=np.float32) for table in (P_UK, Q_VK, W_TK)))

    @classmethod
    def constant(cls, users: int, items: int, steps: int, value: float = 0.0) -> Self:
        return cls.of(np.full((users, 1), value), np.ones((items, 1)), np.ones((steps, 1)))

    def plus(self, other: "Factors", scale: float = 1.0) -> Self:
        """The sum of two sets of logits, the second times `scale`: their columns side by side."""
        pairs = (self.P_UK, np.float32(scale) * other.P_UK), (self.Q_VK, other.Q_VK), (self.W_TK, other.W_TK)
        return type(self)(*map(np.hstack, pairs))

    def biased(
        self, user_U: Indices | None = None, item_V: Indices | None = None, step_T: Indices | None = None
    ) -> Self:
        """These logits plus b_s + b_i + b_t: a bias is a factor whose other two sides are one."""
        factors, shape = self, self.shape
        for side, bias in enumerate((user_U, item_V, step_T)):
            if bias is not None:
                columns: list[NDArray[Any]] = [np.ones((size, 1)) for size in shape]
                columns[side] = np.asarray(bias)[:, None]
                factors = factors.plus(Factors.of(*columns))
        return factors

    def of_only(self, user: Indices, item: Indices) -> Self:
        return type(self).of(self.P_UK[user], self.Q_VK[item], self.W_TK)

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.P_UK), len(self.Q_VK), len(self.W_TK)

    def logits(self, user_B: Indices, step_B: Indices) -> Floats:
        row_BK = torch.zeros(-(-len(user_B) // TILE) * TILE, self.P_UK.shape[1])
        row_BK[: len(user_B)] = torch.from_numpy(self.P_UK[user_B] * self.W_TK[step_B])
        logit_BV = torch.empty(len(row_BK), len(self.Q_VK))
        with threads(1):
            for start in range(0, len(row_BK), TILE):
                torch.mm(row_BK[start : start + TILE], self._table_KV, out=logit_BV[start : start + TILE])
        return np.asarray(logit_BV[: len(user_B)].numpy())

    @cached_property
    def _table_KV(self) -> torch.Tensor:
        """A copy: arrays that were read from a file may not be written to, which torch will not have."""
        return torch.tensor(self.Q_VK).T

    def logits_of(self, user_M: Indices, item_M: Indices, step_M: Indices) -> Floats:
        logit_M = np.empty(len(user_M), np.float32)
        for start in range(0, len(user_M), _TRIPLES):
            part = slice(start, start + _TRIPLES)
            sides = self.P_UK[user_M[part]], self.Q_VK[item_M[part]], self.W_TK[step_M[part]]
            logit_M[part] = np.einsum("mk,mk,mk->m", *sides)
        return logit_M


def sigmoid(logit: Floats) -> Floats:
    """σ(x) = 1 / (1 + exp −x); an overflow of exp means 0, which is right."""
    with np.errstate(over="ignore"):
        probability: Floats = np.float32(1) / (np.float32(1) + np.exp(-logit))
    return probability


INITIAL_LOGIT = -2.0  # The logit of exposure at which gradient descent begins: about one item in ten
#: Standard deviation of the initial factors; share of all batches in which the learning rate rises, to fall after it.
_SD, _WARM_UP = 0.1, 0.2


@dataclass(frozen=True)
class Blocks:
    """The steps from `first` on, in `count` blocks of equal length; steps outside are in the nearest block."""

    first: int
    steps: int
    count: int

    @classmethod
    def of(cls, train: Sequences, count: int) -> "Blocks":
        if not len(train):
            raise UnveilError("exposure cannot be estimated: the training part has no events")
        first, steps = int(train.step_N.min()), int(train.step_N.max()) - int(train.step_N.min()) + 1
        return cls(first, steps, min(count, steps))

    def at(self, step: NDArray[Any]) -> Index:
        return np.clip((step.astype(np.int64) - self.first) * self.count // self.steps, 0, self.count - 1)


@dataclass(frozen=True, eq=False)
class InteractionCounts:
    """User s chose item i in block b `count_N` times; mean rating `rating_N`, `scatter_N` = Σ (r − mean)²."""

    user_N: Index
    item_N: Index
    block_N: Index
    count_N: Values
    shape: tuple[int, int, int]  # users, items, blocks
    rating_N: Values | None = None
    scatter_N: Values | None = None

    @classmethod
    def of(cls, train: Sequences, blocks: Blocks, rating_E: Values | None = None) -> "InteractionCounts":
        shape = (train.n_users, train.n_items, blocks.count)
        user_E, item_E, block_E = train.user_N.astype(np.int64), train.item_N.astype(np.int64), blocks.at(train.step_N)
        key_E = (user_E * shape[1] + item_E) * shape[2] + block_E
        _, first_N, nth_E, count_N = np.unique(key_E, return_index=True, return_inverse=True, return_counts=True)
        user_N, item_N, block_N = (side[first_N] for side in (user_E, item_E, block_E))
        counts = cls(user_N, item_N, block_N, count_N.astype(np.float64), shape)
        if rating_E is None:
            return counts
        mean_N = np.bincount(nth_E, rating_E) / count_N
        scatter_N = np.bincount(nth_E, (rating_E - mean_N[nth_E]) ** 2).astype(np.float64)
        return replace(counts, rating_N=mean_N, scatter_N=scatter_N)

    def __len__(self) -> int:
        return len(self.user_N)


def shrunk_means(index_N: Index, value_N: Values, weight_N: Values, size: int, backing: float) -> Values:
    """Σ w x / (Σ w + backing) of each index."""
    return np.asarray(np.bincount(index_N, weight_N * value_N, size) / (np.bincount(index_N, weight_N, size) + backing))


def shuffled_batches(size: int, batch: int, batches: int, rng: np.random.Generator) -> Iterator[Index]:
    """So many batches of the numbers below `size` in random order, reshuffled after each pass."""
    every = -(-size // batch)
    for nth in range(batches):
        if nth % every == 0:
            parts = np.array_split(rng.permutation(size), every)
        yield parts[nth % every]


def minimise(parameters: Iterable[Parameter], losses: Iterable[Tensor], *, batches: int, lr: float) -> None:
    """Adam with one cycle of the learning rate, on `batches` losses; parameters that need no gradient stay."""
    adam = torch.optim.Adam([each for each in parameters if each.requires_grad], lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, lr, total_steps=batches + 1, pct_start=_WARM_UP)
    with threads(1):  # a step takes a few milliseconds at most: a second thread costs more than it gains
        for loss in losses:
            adam.zero_grad()
            torch.autograd.backward(loss)
            adam.step()
            schedule.step()


class FactorTables(nn.Module):
    """x_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk; unless `personal`, a_s = 0 and P_sk = 1.

    Normal priors: of precision 1 for a and d, of precision `penalty` for the factors. W has mean 1 if users have
    factors, so that all blocks are alike at first, and mean 0 if they have none.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        width: int,
        centre: float,
        *,
        personal: bool = True,
        penalty: float = 8.0,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        users, items, blocks = shape
        self.personal, self.penalty = personal, penalty
        self.centre = nn.Parameter(torch.tensor(centre))
        self.d_V = nn.Parameter(torch.zeros(items))
        self.Q_VK = nn.Parameter(_SD * torch.randn(items, width, generator=generator))
        W_CK = torch.ones(blocks, width) if personal else _SD * torch.randn(blocks, width, generator=generator)
        self.W_CK = nn.Parameter(W_CK, requires_grad=blocks > 1)
        self.a_U = nn.Parameter(torch.zeros(users), requires_grad=personal)
        P_UK = _SD * torch.randn(users, width, generator=generator) if personal else torch.ones(users, width)
        self.P_UK = nn.Parameter(P_UK, requires_grad=personal)

    def of_item(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """x_B of one item each."""
        product_BK = self.P_UK[user_B] * self.Q_VK[item_B] * self.W_CK[block_B]
        return self.centre + self.a_U[user_B] + self.d_V[item_B] + product_BK.sum(1)

    def of_items(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """x_BS of the same items for all."""
        row_BK = self.P_UK[user_B] * self.W_CK[block_B]
        return self.centre + self.a_U[user_B, None] + self.d_V[item_S] + row_BK @ self.Q_VK[item_S].T

    def prior_loss(self) -> Tensor:
        biases = self.d_V.square().sum() + self.a_U.square().sum()
        factors = self.Q_VK.square().sum() + (self.W_CK - float(self.personal)).square().sum()
        if self.personal:
            factors = factors + self.P_UK.square().sum()
        return (biases + self.penalty * factors) / 2

    def factors(self) -> Factors:
        """The same numbers as factors, a block in the place of a step."""
        tables = (self.P_UK, self.Q_VK, self.W_CK, self.a_U, self.d_V)
        P_UK, Q_VK, W_CK, a_U, d_V = (table.detach().numpy() for table in tables)
        return Factors.of(P_UK, Q_VK, W_CK).biased(user_U=a_U + float(self.centre.detach()), item_V=d_V)


@dataclass(kw_only=True)
class Factored(ABC):
    """θ_sit = σ(ψ_sib), b the block of steps that t is in: of `blocks`, or of one where the propensity is static.

    Estimated from the last `window` training events of each user (None: all).
    """

    window: AtLeastOne | None = None
    blocks: AtLeastOne = 10

    name: ClassVar[str]
    kind: ClassVar[Kind]
    _blocks: Blocks = field(init=False, repr=False)
    _psi: Factors = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_ranges(self, self.name)

    def fit(self, train: Sequences) -> Self:
        recent = train if self.window is None else train.recent(self.window)
        self._blocks = Blocks.of(recent, 1 if self.kind == "static" else self.blocks)
        self._psi = self._estimate(recent, self._blocks)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        user_M, item_M, step_M = indices(slots)
        return as_theta(sigmoid(self._psi.logits_of(user_M, item_M, self._blocks.at(step_M))), slots)

    def of_all(self, slots: Slots) -> Tensor:
        user_M, _, step_M = indices(slots)
        return as_theta(sigmoid(self._psi.logits(user_M, self._blocks.at(step_M))), slots)

    @abstractmethod
    def _estimate(self, train: Sequences, blocks: Blocks) -> Factors:
        """ψ from the events of `train`, its steps cut into `blocks`."""


@dataclass(kw_only=True)
class FittedFactors(Factored):
    """ψ of `width` factors, by gradient descent on so many `batches`."""

    width: AtLeastOne = 8
    penalty: NotNegative = 8.0
    batches: AtLeastOne = 1000
    seed: int = 0
