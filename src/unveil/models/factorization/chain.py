"""A stationary first-order chain over the steps, and draws of all steps together. Shapes: T steps, D columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

        The joint precision is block-tridiagonal, so its Cholesky root is block-bidiagonal: one pass forward for
        A = L Lᵀ and L y = b, one back for Lᵀ x = y + ε.
        """
        T, D = evidence.pull_RD.shape
        prior_TD = self.applied(np.broadcast_to(middle_D, (T, D)).copy()) * scale_D
        root_TDD, below_TDD, half_TD = np.zeros((T, D, D)), np.zeros((T, D, D)), np.zeros((T, D))
        for t in range(T):
            block_DD = evidence.precision_RDD[t] + np.diag(self.diagonal_T[t] * scale_D)
            pull_D = evidence.pull_RD[t] + prior_TD[t]
            if t:
                below_TDD[t] = np.linalg.solve(root_TDD[t - 1], np.diag(self.beside * scale_D)).T
                block_DD = block_DD - below_TDD[t] @ below_TDD[t].T
                pull_D = pull_D - below_TDD[t] @ half_TD[t - 1]
            root_TDD[t] = np.linalg.cholesky(block_DD)
            half_TD[t] = np.linalg.solve(root_TDD[t], pull_D)
        return self._back(root_TDD, below_TDD, half_TD + rng.standard_normal((T, D)))

    @staticmethod
    def _back(root_TDD: Values, below_TDD: Values, half_TD: Values) -> Values:
        drawn_TD = np.zeros_like(half_TD)
        for t in reversed(range(len(half_TD))):
            later_D = below_TDD[t + 1].T @ drawn_TD[t + 1] if t + 1 < len(half_TD) else 0.0
            drawn_TD[t] = np.linalg.solve(root_TDD[t].T, half_TD[t] - later_D)
        return drawn_TD
