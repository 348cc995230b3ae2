"""Tensor factorisation by gradient descent: ψ_sit = Σ_k P_sk Q_ik W_tk, minibatches and Adam, as in the paper.

Every factor is learnt: the gradient of one side is the slope of the loss times the other two. Shapes: R rows of a side,
K columns, N tuples, B tuples of a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.models.factorization.tuples import Tuples
from unveil.propensity.factors import Factors

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """The table of users, items or steps: where it is, where it is drawn to, and which of its columns are learnt."""

    table_RK: Tensor
    rest_K: Tensor
    learnt_K: Tensor

    @classmethod
    def of(
        cls, table_RK: Values, rest_K: NDArray[Any] | None = None, learnt_K: NDArray[np.bool_] | None = None
    ) -> "Side":
        """A table that starts here; drawn to 0, and all of it learnt, unless told otherwise."""
        width = table_RK.shape[1]
        rest_K = np.zeros(width) if rest_K is None else rest_K
        learnt_K = np.ones(width, bool) if learnt_K is None else learnt_K
        table, rest, learnt = (torch.tensor(array, dtype=torch.float32) for array in (table_RK, rest_K, learnt_K))
        return cls(table, rest, learnt)


Sides = tuple[Side, Side, Side]


@dataclass(frozen=True)
class Descent:
    """How factors are learnt by gradient descent.

    The loss is the mean over tuples of (ψ − y)², or of the cross-entropy of σ(ψ) if `logistic`, plus
    (penalty / 2N) · ‖table − rest‖² over all three tables.
    """

    logistic: bool
    batch: int = 256
    lr: float = 1e-3
    penalty: float = 0.0

    def epochs(self, sides: Sides, size: int) -> "Epochs":
        """Start; `size` is the number of tuples in an epoch."""
        return Epochs(self, sides, self.penalty / size)

    def slope(self, logit_B: Tensor, value_B: Tensor) -> Tensor:
        """The derivative of a tuple's loss by its ψ."""
        return torch.sigmoid(logit_B) - value_B if self.logistic else 2 * (logit_B - value_B)


class Epochs:
    """The state of a descent: the tables, and what Adam remembers of their gradients."""

    def __init__(self, descent: Descent, sides: Sides, decay: float) -> None:
        self.descent, self.sides, self.decay = descent, sides, decay
        for side in sides:
            side.table_RK.grad = torch.zeros_like(side.table_RK)
        self.adam = torch.optim.Adam([side.table_RK for side in sides], lr=descent.lr, fused=True)

    def epoch(self, tuples: Tuples, rng: np.random.Generator) -> None:
        """One pass over the tuples in random order."""
        for index, value_B in _batches(tuples, self.descent.batch, rng):
            self.gradient(index, value_B)
            self.adam.step()

    def gradient(self, index: list[Tensor], value_B: Tensor) -> None:
        """∂L/∂P_s = Σ slope_n · Q_i ∘ W_t over the batch's tuples of s, divided by B; and so for Q and W."""
        rows = [side.table_RK[index_B] for side, index_B in zip(self.sides, index, strict=True)]
        product_BK = rows[0] * rows[1]
        slope_B1 = self.descent.slope((product_BK * rows[2]).sum(1), value_B)[:, None] / len(value_B)
        others = [rows[1] * rows[2], rows[0] * rows[2], product_BK]
        for side, index_B, other_BK in zip(self.sides, index, others, strict=True):
            grad_RK = side.table_RK.grad
            assert grad_RK is not None
            grad_RK.zero_()
            if self.decay:
                torch.sub(side.table_RK, side.rest_K, out=grad_RK).mul_(self.decay)
            grad_RK.index_add_(0, index_B, other_BK.mul_(slope_B1)).mul_(side.learnt_K)

    def factors(self) -> Factors:
        """The tables as they are now."""
        return Factors.of(*(side.table_RK.numpy().copy() for side in self.sides))


def _batches(tuples: Tuples, size: int, rng: np.random.Generator) -> Iterator[tuple[list[Tensor], Tensor]]:
    order = rng.permutation(len(tuples))
    index = [torch.from_numpy(side_N[order]) for side_N in tuples.sides]
    value_N = torch.from_numpy(tuples.value_N[order].astype(np.float32))
    for at in range(0, len(order), size):
        yield [side_N[at : at + size] for side_N in index], value_N[at : at + size]
