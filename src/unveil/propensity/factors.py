"""Factors: a number for every (user, item, step) from three small tables, never the U × V × T cube.

Shapes: U users, V items, T steps, K factors, B slots asked for, M (user, item, step) triples.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.processes import threads

Floats = NDArray[np.float32]
Indices = NDArray[Any]

#: Rows of one matrix product. Every product has this shape: a logit has the same bits however many are asked for.
TILE = 64
#: Triples looked up at once.
_TRIPLES = 1 << 16


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
        """From tables of any kind of number."""
        return cls(*(np.ascontiguousarray(table, dtype=np.float32) for table in (P_UK, Q_VK, W_TK)))

    @classmethod
    def constant(cls, users: int, items: int, steps: int, value: float = 0.0) -> Self:
        """The same logit everywhere: where one starts when building from biases."""
        return cls.of(np.full((users, 1), value), np.ones((items, 1)), np.ones((steps, 1)))

    def plus(self, other: "Factors", scale: float = 1.0) -> Self:
        """The sum of two sets of logits, the second times `scale`: their columns side by side."""
        return type(self)(
            np.hstack([self.P_UK, np.float32(scale) * other.P_UK]),
            np.hstack([self.Q_VK, other.Q_VK]),
            np.hstack([self.W_TK, other.W_TK]),
        )

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
        """The logits of some users and items, in the order given."""
        return type(self).of(self.P_UK[user], self.Q_VK[item], self.W_TK)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Users, items, steps."""
        return len(self.P_UK), len(self.Q_VK), len(self.W_TK)

    def logits(self, user_B: Indices, step_B: Indices) -> Floats:
        """Logits_BV of every item at these slots."""
        row_BK = self.P_UK[user_B] * self.W_TK[step_B]
        logit_BV = np.empty((len(row_BK), len(self.Q_VK)), np.float32)
        with threads(1):
            for start in range(0, len(row_BK), TILE):
                self._fill(logit_BV[start : start + TILE], row_BK[start : start + TILE])
        return logit_BV

    def _fill(self, logit_BV: Floats, row_BK: Floats) -> None:
        if len(row_BK) == TILE:
            torch.mm(torch.from_numpy(row_BK), self._table_KV, out=torch.from_numpy(logit_BV))
        else:
            tile_BK = torch.zeros(TILE, row_BK.shape[1])
            tile_BK[: len(row_BK)] = torch.from_numpy(row_BK)
            logit_BV[:] = torch.mm(tile_BK, self._table_KV)[: len(row_BK)].numpy()

    @cached_property
    def _table_KV(self) -> torch.Tensor:
        """A copy: arrays that were read from a file may not be written to, which torch will not have."""
        return torch.tensor(self.Q_VK).T

    def logits_of(self, user_M: Indices, item_M: Indices, step_M: Indices) -> Floats:
        """Logit_M of one item at each slot."""
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
