"""A stationary first-order chain over the steps, and draws of all steps together. Shapes: T steps, D columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky_banded
from scipy.linalg.lapack import dtbtrs

from unveil.models.factorization.conditionals import Evidence

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """x_t = ρ x_{t−1} + √(1 − ρ²) ε_t, of variance one; its precision over the steps has three diagonals."""

    steps: int
    persistence: float

    @property
    def diagonal_T(self) -> Values:
        """(1, 1 + ρ², …, 1 + ρ², 1) / (1 − ρ²); 1 where there is a single step."""
        if self.steps == 1:
            return np.ones(1)
        inner_T = np.full(self.steps, 1 + self.persistence**2)
        inner_T[[0, -1]] = 1
        return np.asarray(inner_T / (1 - self.persistence**2))

    @property
    def beside(self) -> float:
        """−ρ / (1 − ρ²), between neighbours."""
        return -self.persistence / (1 - self.persistence**2)

    def applied(self, x_TD: Values) -> Values:
        """The precision times x."""
        product_TD = self.diagonal_T[:, None] * x_TD
        product_TD[1:] += self.beside * x_TD[:-1]
        product_TD[:-1] += self.beside * x_TD[1:]
        return np.asarray(product_TD)

    def roughness(self, x_TD: Values) -> Values:
        """xᵀ (precision) x of each column: how unlikely the chain finds it."""
        return np.asarray((x_TD * self.applied(x_TD)).sum(0))

    def draw(self, evidence: Evidence, scale_D: Values, middle_D: Values, rng: np.random.Generator) -> Values:
        """All steps at once, from the prior N(middle, (scale × precision)⁻¹) and the evidence.

        The joint precision is a band: blocks of D along the diagonal and, at distance D, the chain between neighbours.
        So is its root: A = L Lᵀ, L y = b, Lᵀ x = y + ε.
        """
        T, D = evidence.pull_RD.shape
        pull_TD = evidence.pull_RD + self.applied(np.tile(middle_D, (T, 1))) * scale_D
        root = cholesky_banded(self._band(evidence.precision_RDD, scale_D), lower=True, check_finite=False)
        half_N, _ = dtbtrs(root, pull_TD.reshape(-1, 1), uplo="L")
        drawn_N, _ = dtbtrs(root, half_N + rng.standard_normal((T * D, 1)), uplo="L", trans="T")
        return np.asarray(drawn_N).reshape(T, D)

    def _band(self, precision_TDD: Values, scale_D: Values) -> Values:
        """The joint precision by diagonals, the main one first, each flat over (step, column)."""
        T, D, _ = precision_TDD.shape
        band = np.zeros((D + 1, T, D))
        for below in range(D):
            band[below, :, : D - below] = precision_TDD.diagonal(-below, 1, 2)
        band[0] += self.diagonal_T[:, None] * scale_D
        band[D, :-1] = self.beside * scale_D
        return band.reshape(D + 1, T * D)
