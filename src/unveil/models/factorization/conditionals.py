"""Gaussian conditionals: what the tuples of a row say about it, and draws given that. Shapes: R rows of one side,
N tuples, B tuples of one block, D columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unveil.models.factorization.tuples import Index, Tuples

Values = NDArray[np.float64]

_BLOCK = 1 << 12


@dataclass(frozen=True, eq=False)
class Evidence:
    """Σ_n ω_n x_n x_nᵀ and Σ_n ω_n y_n x_n over the tuples of each row: the log likelihood is −½ fᵀAf + bᵀf."""

    precision_RDD: Values
    pull_RD: Values


@dataclass(frozen=True, eq=False)
class Grouped:
    """The tuples sorted by one side; what they say of its rows is summed without ever holding N × D numbers."""

    order_N: Index
    offset_R1: Index
    others: tuple[Index, Index]  # the two other indices, sorted alike

    @classmethod
    def of(cls, tuples: Tuples, side: int) -> Self:
        """Sort by side 0, 1 or 2: user, item or step."""
        order_N = np.argsort(tuples.sides[side], kind="stable")
        counts_R = np.bincount(tuples.sides[side], minlength=tuples.shape[side])
        one, two = (tuples.sides[other][order_N] for other in range(3) if other != side)
        return cls(order_N, np.concatenate([[0], np.cumsum(counts_R)]), (one, two))

    def evidence(self, tables: tuple[Values, Values], value_N: Values, precision_N: Values) -> Evidence:
        """What observations of ψ with these precisions say about each row, the other two sides' tables given.

        ψ = Σ_k f_k g_k h_k + f_D + g_D + h_D: the last column of a table is its bias, so that the row f is seen
        through x = (g ∘ h, 1) after g_D + h_D has been taken off.
        """
        D, R = tables[0].shape[1], len(self.offset_R1) - 1
        both_RDE = np.zeros((R, D, D + 1))  # the precision, and beside it the pull
        for first, last in self._blocks():
            rows = slice(self.offset_R1[first], self.offset_R1[last])
            x_BE = self._seen(tables, rows, value_N)
            weighed_BD = x_BE[:, :-1] * precision_N[self.order_N[rows], None]
            for row, at in enumerate(self._within(first, last), first):
                np.matmul(weighed_BD[at].T, x_BE[at], out=both_RDE[row])
        return Evidence(both_RDE[..., :-1], both_RDE[..., -1])

    def _seen(self, tables: tuple[Values, Values], rows: slice, value_N: Values) -> Values:
        """(x, y) of a block: through what the row is seen, and what is seen."""
        one_BD, two_BD = (table[index[rows]] for table, index in zip(tables, self.others, strict=True))
        x_BE = np.empty((len(one_BD), one_BD.shape[1] + 1))
        np.multiply(one_BD, two_BD, out=x_BE[:, :-1])
        x_BE[:, -2] = 1
        x_BE[:, -1] = value_N[self.order_N[rows]] - one_BD[:, -1] - two_BD[:, -1]
        return x_BE

    def _within(self, first: int, last: int) -> Iterator[slice]:
        """Where the tuples of each row lie in a block."""
        edges = (self.offset_R1[first : last + 1] - self.offset_R1[first]).tolist()
        yield from map(slice, edges[:-1], edges[1:])

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Runs of whole rows of about so many tuples."""
        total = int(self.offset_R1[-1])
        edges = np.searchsorted(self.offset_R1, np.arange(0, total + _BLOCK, _BLOCK)).clip(max=len(self.offset_R1) - 1)
        edges = np.unique(np.append(edges, [0, len(self.offset_R1) - 1]))
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)


def normal(precision_RDD: Values, pull_RD: Values, rng: np.random.Generator) -> Values:
    """f_r ~ N(A_r⁻¹ b_r, A_r⁻¹) for every row, by A = L Lᵀ."""
    root_RDD = np.linalg.cholesky(precision_RDD)
    half_RD = np.linalg.solve(root_RDD, pull_RD[..., None])[..., 0] + rng.standard_normal(pull_RD.shape)
    return np.asarray(np.linalg.solve(np.swapaxes(root_RDD, -1, -2), half_RD[..., None])[..., 0], np.float64)
