"""Gaussian conditionals: what the tuples of a row say about it, and draws given that. Shapes: R rows of one side,
N tuples, B tuples of one block, D columns.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky_banded
from scipy.linalg.lapack import dtbtrs

from unveil.models.tensor_factorization.task import Index, Likelihood, Tuples
from unveil.propensity.factors import Factors

Values = NDArray[np.float64]

_BLOCK = 1 << 12


class Evidence(NamedTuple):
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
        order_N = np.argsort(tuples.sides[side], kind="stable")
        counts_R = np.bincount(tuples.sides[side], minlength=tuples.shape[side])
        one, two = (tuples.sides[other][order_N] for other in range(3) if other != side)
        return cls(order_N, np.concatenate([[0], np.cumsum(counts_R)]), (one, two))

    def evidence(self, tables: tuple[Values, Values], value_N: Values, precision_N: Values) -> Evidence:
        """Of observations of ψ = Σ_k f_k g_k h_k + f_D + g_D + h_D (the last column is the bias) for each row f.

        Linear in f: y − g_D − h_D is observed through x = (g ∘ h, 1).
        """
        D, R = tables[0].shape[1], len(self.offset_R1) - 1
        both_RDE = np.zeros((R, D, D + 1))  # the precision, and beside it the pull
        # Whole rows at a time, of about so many tuples.
        edges = np.searchsorted(self.offset_R1, np.arange(0, len(value_N) + _BLOCK, _BLOCK)).clip(max=R)
        for first, last in pairwise(np.unique([0, *edges, R]).tolist()):
            rows = slice(self.offset_R1[first], self.offset_R1[last])
            x_BE = self._seen(tables, rows, value_N)
            weighed_BD = x_BE[:, :-1] * precision_N[self.order_N[rows], None]
            for row, at in enumerate(pairwise(self.offset_R1[first : last + 1] - self.offset_R1[first]), first):
                np.matmul(weighed_BD[slice(*at)].T, x_BE[slice(*at)], out=both_RDE[row])
        return Evidence(both_RDE[..., :-1], both_RDE[..., -1])

    def _seen(self, tables: tuple[Values, Values], rows: slice, value_N: Values) -> Values:
        """(x, y) of a block."""
        one_BD, two_BD = (table[index[rows]] for table, index in zip(tables, self.others, strict=True))
        x_BE = np.empty((len(one_BD), one_BD.shape[1] + 1))
        np.multiply(one_BD, two_BD, out=x_BE[:, :-1])
        x_BE[:, -2] = 1
        x_BE[:, -1] = value_N[self.order_N[rows]] - one_BD[:, -1] - two_BD[:, -1]
        return x_BE


def normal(precision_RDD: Values, pull_RD: Values, rng: np.random.Generator) -> Values:
    """f_r ~ N(A_r⁻¹ b_r, A_r⁻¹) for every row, by A = L Lᵀ."""
    root_RDD = np.linalg.cholesky(precision_RDD)
    half_RD = np.linalg.solve(root_RDD, pull_RD[..., None])[..., 0] + rng.standard_normal(pull_RD.shape)
    return np.asarray(np.linalg.solve(np.swapaxes(root_RDD, -1, -2), half_RD[..., None])[..., 0], np.float64)


def draw_rows(table_RD: Values, evidence: Evidence, rng: np.random.Generator) -> Values:
    """μ, Λ | rows, then every row | μ, Λ, tuples, where rows are alike: f_r ~ N(μ, Λ⁻¹).

    Λ ~ Wishart(I, D), μ ~ N(0, Λ⁻¹), with the conditionals of Salakhutdinov and Mnih (2008).
    """
    mean_D, precision_DD = spread_of(table_RD, rng)
    return normal(evidence.precision_RDD + precision_DD, evidence.pull_RD + precision_DD @ mean_D, rng)


def spread_of(table_RD: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """Λ ~ Wishart((I + Σ (f_r − f̄)(f_r − f̄)ᵀ + R/(R+1) f̄f̄ᵀ)⁻¹, D + R), μ ~ N(R f̄/(R+1), ((R+1)Λ)⁻¹)."""
    R, D = table_RD.shape
    mean_D = table_RD.mean(0)
    apart_RD = table_RD - mean_D
    scatter_DD = np.eye(D) + apart_RD.T @ apart_RD + R / (R + 1) * np.outer(mean_D, mean_D)
    precision_DD = wishart(np.linalg.inv(scatter_DD), D + R, rng)
    weight_DD = (R + 1) * precision_DD
    return normal(weight_DD[None], (weight_DD @ mean_D * R / (R + 1))[None], rng)[0], precision_DD


@dataclass(frozen=True)
class SlowSteps:
    """W_tk = 1 + sway_k · x_t, and the bias about 0 alike, with x_t = ρ x_{t−1} + √(1 − ρ²) ε_t of variance one.

    ρ is the persistence; the precision over the steps has three diagonals. 1/sway_k² ~ Gamma with mean 1/sway² and
    the shape `firmness`.
    """

    persistence: float = 0.95
    sway: float = 0.3
    firmness: float = 1.0

    def draw(self, table_TD: Values, evidence: Evidence, rng: np.random.Generator) -> Values:
        """1/sway_k² | steps, then all steps together | sway, tuples."""
        middle_D = np.append(np.ones(table_TD.shape[1] - 1), 0.0)
        apart_TD = table_TD - middle_D
        rough_D = (apart_TD * self.precision_times(apart_TD)).sum(0)  # how unlikely the chain finds it
        shape, rate_D = self.firmness + len(table_TD) / 2, self.firmness * self.sway**2 + rough_D / 2
        return self.draw_chain(evidence, rng.gamma(shape, 1 / rate_D), middle_D, rng)

    def draw_chain(self, evidence: Evidence, scale_D: Values, middle_D: Values, rng: np.random.Generator) -> Values:
        """All steps at once, from the prior N(middle, (scale × precision)⁻¹) and the evidence.

        The joint precision is banded: blocks of D, and the chain at distance D. A = L Lᵀ, L y = b, Lᵀ x = y + ε.
        """
        T, D = evidence.pull_RD.shape
        diagonal_T, beside = self._precision(T)
        band = np.zeros((D + 1, T, D))  # by diagonals, the main one first, each over (step, column)
        for below in range(D):
            band[below, :, : D - below] = evidence.precision_RDD.diagonal(-below, 1, 2)
        band[0] += diagonal_T[:, None] * scale_D
        band[D, :-1] = beside * scale_D
        pull_TD = evidence.pull_RD + self.precision_times(np.tile(middle_D, (T, 1))) * scale_D
        root = cholesky_banded(band.reshape(D + 1, T * D), lower=True, check_finite=False)
        half_N, _ = dtbtrs(root, pull_TD.reshape(-1, 1), uplo="L")
        drawn_N, _ = dtbtrs(root, half_N + rng.standard_normal((T * D, 1)), uplo="L", trans="T")
        return np.asarray(drawn_N).reshape(T, D)

    def precision_times(self, x_TD: Values) -> Values:
        diagonal_T, beside = self._precision(len(x_TD))
        product_TD = diagonal_T[:, None] * x_TD
        product_TD[1:] += beside * x_TD[:-1]
        product_TD[:-1] += beside * x_TD[1:]
        return np.asarray(product_TD)

    def _precision(self, steps: int) -> tuple[Values, float]:
        """(1, 1 + ρ², …, 1 + ρ², 1) / (1 − ρ²), 1 for a single step; and −ρ / (1 − ρ²) between neighbours."""
        inner_T, free = np.full(steps, 1 + self.persistence**2), 1 - self.persistence**2
        inner_T[[0, -1]] = 1 if steps > 1 else free
        return inner_T / free, -self.persistence / free


def wishart(scale_DD: Values, freedom: int, rng: np.random.Generator) -> Values:
    """A draw with mean freedom × scale, by Bartlett's decomposition."""
    D = len(scale_DD)
    lower_DD = np.tril(rng.standard_normal((D, D)), -1)
    lower_DD[np.diag_indices(D)] = np.sqrt(rng.chisquare(freedom - np.arange(D)))
    half_DD = np.linalg.cholesky(scale_DD) @ lower_DD
    return np.asarray(half_DD @ half_DD.T)


Tables = tuple[Values, Values, Values]

_PREDICTED = 1 << 17


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of all factors."""

    centre: float
    tables: Tables

    def logits(self, tuples: Tuples) -> Values:
        parts = [np.zeros(0)]
        for at in range(0, len(tuples), _PREDICTED):
            rows = [table[index[at : at + _PREDICTED]] for table, index in zip(self.tables, tuples.sides, strict=True)]
            product_B = np.einsum("bk,bk,bk->b", *(row[:, :-1] for row in rows))
            parts.append(self.centre + product_B + sum(row[:, -1] for row in rows))
        return np.concatenate(parts)

    def factors(self) -> Factors:
        """The same logits as plain factors: the centre and the biases are columns whose other sides are one."""
        P_UD, Q_VD, W_TD = self.tables
        centre = Factors.constant(len(P_UD), len(Q_VD), len(W_TD), self.centre)
        product = Factors.of(P_UD[:, :-1], Q_VD[:, :-1], W_TD[:, :-1])
        return centre.plus(product).biased(P_UD[:, -1], Q_VD[:, -1], W_TD[:, -1])


@dataclass(frozen=True)
class Gibbs:
    """How the sampler runs. With `width` 0 it fits biases alone."""

    width: int = 15
    sweeps: int = 100
    burn_in: int = 40  # first sweeps, whose draws still remember the start
    steps: SlowSteps = field(default_factory=SlowSteps)

    def sample(
        self,
        train: Tuples,
        likelihood: Likelihood,
        tested: Sequence[Tuples],
        rng: np.random.Generator,
        advance: Callable[[int], None] = lambda tuples: None,
    ) -> tuple[Draw, list[Values]]:
        """The last draw; and predictions of the `tested` tuples, averaged over the draws after the burn-in."""
        total = [np.zeros(len(part)) for part in tested]
        for sweep, draw in enumerate(self.draws(train, likelihood, rng)):
            if sweep >= self.burn_in:
                for sum_N, part in zip(total, tested, strict=True):
                    sum_N += likelihood.predicted(draw.logits(part))
            advance(len(train))
        return draw, [sum_N / (self.sweeps - self.burn_in) for sum_N in total]

    def draws(self, train: Tuples, likelihood: Likelihood, rng: np.random.Generator) -> Iterator[Draw]:
        """The draw after each sweep, from small factors of users and items, steps of 1, and no biases."""
        grouped = [Grouped.of(train, side) for side in range(3)]
        users, items, steps = (np.zeros((size, self.width + 1)) for size in train.shape)
        users[:, :-1] = 0.3 * rng.standard_normal((len(users), self.width))
        items[:, :-1] = 0.3 * rng.standard_normal((len(items), self.width))
        steps[:, :-1] = 1
        draw = Draw(likelihood.centre(train.value_N), (users, items, steps))
        for _ in range(self.sweeps):
            value_N, precision_N = likelihood.gaussian(train.value_N, draw.logits(train), rng)
            tables = list(draw.tables)
            for side, (group, drawn) in enumerate(zip(grouped, (draw_rows, draw_rows, self.steps.draw), strict=True)):
                one, two = (tables[other] for other in range(3) if other != side)
                evidence = group.evidence((one, two), value_N - draw.centre, precision_N)
                tables[side] = drawn(tables[side], evidence, rng)
            draw = Draw(draw.centre, (tables[0], tables[1], tables[2]))
            yield draw
