"""What propensities estimated as factors share: blocks of steps, counted interactions, small tables, gradient descent.

Shapes: N interactions counted (each user, item and block once), E events, M slots, V items, C blocks, B rows of a
batch, S items of a sample.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import Parameter

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences, every_rating
from unveil.data.slots import Slots
from unveil.errors import UnveilError, refuse_unless
from unveil.propensity.base import Kind
from unveil.propensity.factors import Factors, sigmoid

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """The steps from `first` on, in `count` blocks of equal length; steps outside are in the nearest block."""

    first: int
    steps: int
    count: int

    @classmethod
    def of(cls, train: Sequences, count: int) -> "Blocks":
        """Over the steps that occur in training; never more blocks than steps."""
        refuse_unless(count >= 1, "blocks", count, "at least 1")
        if not len(train):
            raise UnveilError("exposure cannot be estimated: the training part has no events")
        first, steps = int(train.step_N.min()), int(train.step_N.max()) - int(train.step_N.min()) + 1
        return cls(first, steps, min(count, steps))

    def at(self, step: NDArray[Any]) -> Index:
        """The block of each step."""
        block = (step.astype(np.int64) - self.first) * self.count // self.steps
        return np.clip(block, 0, self.count - 1)


Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Takes:
    """`count_N` times user s took item i in block b, rated `rating_N` on average, with `scatter_N` = Σ (r − mean)²."""

    user_N: Index
    item_N: Index
    block_N: Index
    count_N: Values
    shape: tuple[int, int, int]  # users, items, blocks
    rating_N: Values | None = None
    scatter_N: Values | None = None

    @classmethod
    def of(cls, train: Sequences, blocks: Blocks, rating_E: Values | None = None) -> "Takes":
        """Of the events of the training part and, where there are, their ratings."""
        shape = (train.n_users, train.n_items, blocks.count)
        user_E, item_E, block_E = train.user_N.astype(np.int64), train.item_N.astype(np.int64), blocks.at(train.step_N)
        key_E = (user_E * shape[1] + item_E) * shape[2] + block_E
        _, first_N, nth_E, count_N = np.unique(key_E, return_index=True, return_inverse=True, return_counts=True)
        user_N, item_N, block_N = (side[first_N] for side in (user_E, item_E, block_E))
        taken = cls(user_N, item_N, block_N, count_N.astype(np.float64), shape)
        if rating_E is None:
            return taken
        mean_N = np.bincount(nth_E, rating_E) / count_N
        scatter_N = np.bincount(nth_E, (rating_E - mean_N[nth_E]) ** 2).astype(np.float64)
        return replace(taken, rating_N=mean_N, scatter_N=scatter_N)

    def __len__(self) -> int:
        return len(self.user_N)


def ratings_of(log: Interactions, train: Sequences, who: str) -> Values:
    """The rating of every training event; empty ones are refused."""
    return every_rating(log, train, f"the propensity {who!r}", "timing or joint-temporal, which need none")


#: The share of all batches in which the rate rises; it falls in the others.
_RISING = 0.2


def dealt(size: int, batch: int, batches: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Batches of all places below `size` in random order, over and over."""
    every = -(-size // batch)
    for nth in range(batches):
        if nth % every == 0:
            parts = np.array_split(rng.permutation(size), every)
        yield parts[nth % every]


def descend(learnt: list[Parameter], losses: Iterable[Tensor], *, batches: int, lr: float) -> None:
    """Adam with a rate that rises and falls, over so many losses; each is formed by what was learnt before it."""
    adam = torch.optim.Adam(learnt, lr=lr)
    pace = torch.optim.lr_scheduler.OneCycleLR(adam, lr, total_steps=batches + 1, pct_start=_RISING)
    for loss in losses:
        adam.zero_grad()
        torch.autograd.backward(loss)
        adam.step()
        pace.step()


#: The logit of exposure at which a descent begins: about one item in ten.
START = -2.0
#: Of the first factors.
_SPREAD = 0.1


class Tables(nn.Module):
    """x_sib = centre + a_s + d_i + Σ_k P_sk Q_ik W_bk; where it is not `personal`, a_s = 0 and P_sk = 1.

    Drawn to 0 as by normal priors: of precision `bias` for a and d, of precision `penalty` for the factors. W is drawn
    to 1 where users have factors, so that at first all blocks are alike, and to 0 where they have not.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        width: int,
        centre: float,
        *,
        personal: bool = True,
        bias: float = 1.0,
        penalty: float = 8.0,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        users, items, blocks = shape
        self.personal, self.bias, self.penalty = personal, bias, penalty
        self.centre = nn.Parameter(torch.tensor(centre))
        self.d_V = nn.Parameter(torch.zeros(items))
        self.Q_VK = nn.Parameter(_SPREAD * torch.randn(items, width, generator=generator))
        W_CK = torch.ones(blocks, width) if personal else _SPREAD * torch.randn(blocks, width, generator=generator)
        self.W_CK = nn.Parameter(W_CK, requires_grad=blocks > 1)
        self.a_U = nn.Parameter(torch.zeros(users), requires_grad=personal)
        P_UK = _SPREAD * torch.randn(users, width, generator=generator) if personal else torch.ones(users, width)
        self.P_UK = nn.Parameter(P_UK, requires_grad=personal)

    def own(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """x_B of one item each."""
        product_BK = self.P_UK[user_B] * self.Q_VK[item_B] * self.W_CK[block_B]
        return self.centre + self.a_U[user_B] + self.d_V[item_B] + product_BK.sum(1)

    def among(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """x_BS of the same items for all."""
        row_BK = self.P_UK[user_B] * self.W_CK[block_B]
        return self.centre + self.a_U[user_B, None] + self.d_V[item_S] + row_BK @ self.Q_VK[item_S].T

    def size(self) -> Tensor:
        """Minus the logarithm of the prior, up to a constant."""
        rest = 1.0 if self.personal else 0.0
        biases = self.d_V.square().sum() + self.a_U.square().sum()
        factors = self.Q_VK.square().sum() + (self.W_CK - rest).square().sum()
        if self.personal:
            factors = factors + self.P_UK.square().sum()
        return (self.bias * biases + self.penalty * factors) / 2

    def factors(self) -> Factors:
        """The same numbers as factors, a block in the place of a step."""
        P_UK, Q_VK, W_CK, a_U, d_V = (
            table.detach().numpy() for table in (self.P_UK, self.Q_VK, self.W_CK, self.a_U, self.d_V)
        )
        return Factors.of(P_UK, Q_VK, W_CK).biased(user_U=a_U + float(self.centre.detach()), item_V=d_V)


class Line(nn.Module):
    """x_ib = centre + slope · log popularity of item i in block b: two numbers are learnt.

    A slope below 0 says that popularity is no exposure at all: what is found then is 0.
    """

    def __init__(self, log_popularity_CV: Values, centre: float) -> None:
        super().__init__()
        self.x_CV = torch.from_numpy(log_popularity_CV.astype(np.float32))
        self.centre, self.slope = nn.Parameter(torch.tensor(centre)), nn.Parameter(torch.tensor(0.0))

    def own(self, user_B: Tensor, item_B: Tensor, block_B: Tensor) -> Tensor:
        """x_B of one item each."""
        return self.centre + self.slope * self.x_CV[block_B, item_B]

    def among(self, user_B: Tensor, block_B: Tensor, item_S: Tensor) -> Tensor:
        """x_BS of the same items for all."""
        return self.centre + self.slope * self.x_CV[block_B][:, item_S]

    def size(self) -> Tensor:
        """Of the slope: without evidence it is 0."""
        return self.slope.square() / 2

    @property
    def exponent(self) -> float:
        """The slope that was found, or 0."""
        return max(0.0, float(self.slope.detach()))

    def factors(self, users: int) -> Factors:
        """The same numbers as factors: a column for each block."""
        blocks, items = self.x_CV.shape
        slope_VC = self.x_CV.numpy().T * self.exponent
        return Factors.of(np.ones((users, blocks)), slope_VC, np.eye(blocks)).biased(
            item_V=np.full(items, float(self.centre.detach()))
        )


def log_popularity(takes: Takes) -> Values:
    """log of each item's share (with half a take added) of all takes of the block, less the mean of all."""
    count_CV = np.full(takes.shape[:0:-1], 0.5)
    np.add.at(count_CV, (takes.block_N, takes.item_N), takes.count_N)
    log_CV = np.log(count_CV / count_CV.sum(1, keepdims=True))
    return np.asarray(log_CV - log_CV.mean())


class Factored(ABC):
    """θ_sit = σ(ψ_sib), b the block of steps that t is in: of `blocks`, or of one where the propensity is static.

    Estimated from the last `window` training events of each user (None: all).
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]
    window: int | None
    blocks: int
    _blocks: Blocks
    _psi: Factors

    def __post_init__(self) -> None:
        """An option that is out of range is refused when one is made, before any work."""
        for name in ("window", "blocks", "width", "batches"):
            value = getattr(self, name, None)
            refuse_unless(value is None or value >= 1, f"{self.name}.{name}", value, "at least 1")
        penalty, sharpness = getattr(self, "penalty", 0.0), getattr(self, "sharpness", 1.0)
        refuse_unless(0 <= penalty < float("inf"), f"{self.name}.penalty", penalty, "0 or more")
        refuse_unless(0 < sharpness < float("inf"), f"{self.name}.sharpness", sharpness, "above 0")

    def fit(self, train: Sequences) -> Self:
        """Estimate ψ."""
        recent = train if self.window is None else train.recent(self.window)
        self._blocks = Blocks.of(recent, 1 if self.kind == "static" else self.blocks)
        self._psi = self._estimated(recent, self._blocks)
        return self

    def __call__(self, slots: Slots) -> Tensor:
        """θ̂ of the slots' items."""
        user_M, item_M, step_M = (index.cpu().numpy() for index in (slots.user_M, slots.item_M, slots.step_M))
        return _tensor(self._psi.logits_of(user_M, item_M, self._blocks.at(step_M)), slots)

    def of_all(self, slots: Slots) -> Tensor:
        """θ̂ of all items."""
        user_M, step_M = (index.cpu().numpy() for index in (slots.user_M, slots.step_M))
        return _tensor(self._psi.logits(user_M, self._blocks.at(step_M)), slots)

    @abstractmethod
    def _estimated(self, train: Sequences, blocks: Blocks) -> Factors:
        """ψ from the events of `train`, its steps cut into `blocks`."""


def _tensor(psi: NDArray[np.float32], slots: Slots) -> Tensor:
    return torch.from_numpy(sigmoid(psi)).to(slots.item_M.device).clamp_min(torch.finfo(torch.float32).tiny)
