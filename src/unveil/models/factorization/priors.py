"""Priors of the rows of a side, with the draws of their own parameters. Shapes: R rows, T steps, D columns."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unveil.models.factorization.chain import Chain
from unveil.models.factorization.conditionals import Evidence, normal

Values = NDArray[np.float64]


class Prior(Protocol):
    """Draws a side's rows given the evidence of the tuples, its own parameters first."""

    def draw(self, table_RD: Values, evidence: Evidence, rng: np.random.Generator) -> Values:
        """New rows, given the present ones (for the parameters) and the evidence (for the rows)."""


@dataclass(frozen=True)
class NormalWishart:
    """Rows are alike: f_r ~ N(μ, Λ⁻¹), Λ ~ Wishart(I, D), μ ~ N(0, (β Λ)⁻¹).

    How far rows spread, and in which directions together, is learnt: nothing has to be tuned. Salakhutdinov and Mnih
    (2008) give the conditionals.
    """

    beta: float = 1.0

    def draw(self, table_RD: Values, evidence: Evidence, rng: np.random.Generator) -> Values:
        """μ, Λ | rows, then every row | μ, Λ, tuples."""
        mean_D, precision_DD = self.parameters(table_RD, rng)
        return normal(evidence.precision_RDD + precision_DD, evidence.pull_RD + precision_DD @ mean_D, rng)

    def parameters(self, table_RD: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """Λ ~ Wishart((I + Σ (f_r − f̄)(f_r − f̄)ᵀ + Rβ/(R+β) f̄f̄ᵀ)⁻¹, D + R), μ ~ N(R f̄/(R+β), ((R+β)Λ)⁻¹)."""
        R, D = table_RD.shape
        mean_D = table_RD.mean(0)
        apart_RD = table_RD - mean_D
        shrink = R * self.beta / (R + self.beta)
        scatter_DD = np.eye(D) + apart_RD.T @ apart_RD + shrink * np.outer(mean_D, mean_D)
        precision_DD = wishart(np.linalg.inv(scatter_DD), D + R, rng)
        weight_DD = (R + self.beta) * precision_DD
        return normal(weight_DD[None], (weight_DD @ mean_D * R / (R + self.beta))[None], rng)[0], precision_DD


@dataclass(frozen=True)
class SlowSteps:
    """Steps differ little from step to step: each column is a stationary chain about 1, the bias about 0.

    W_tk = 1 + sway_k · x_t, with x of variance one and correlation persistence^|t − t'|; 1/sway² ~ Gamma with mean
    1/sway² and `firmness` as its shape, so that the tuples decide how far a factor comes and goes.
    """

    persistence: float = 0.95
    sway: float = 0.3
    firmness: float = 1.0

    def draw(self, table_RD: Values, evidence: Evidence, rng: np.random.Generator) -> Values:
        """1/sway_k² | steps, then all steps together | sway, tuples."""
        chain = Chain(len(table_RD), self.persistence)
        middle_D = np.append(np.ones(table_RD.shape[1] - 1), 0.0)
        rough_D = chain.roughness(table_RD - middle_D)
        shape, rate_D = self.firmness + len(table_RD) / 2, self.firmness * self.sway**2 + rough_D / 2
        return chain.draw(evidence, rng.gamma(shape, 1 / rate_D), middle_D, rng)


def wishart(scale_DD: Values, freedom: int, rng: np.random.Generator) -> Values:
    """A draw with mean freedom × scale, by Bartlett's decomposition."""
    D = len(scale_DD)
    lower_DD = np.tril(rng.standard_normal((D, D)), -1)
    lower_DD[np.diag_indices(D)] = np.sqrt(rng.chisquare(freedom - np.arange(D)))
    half_DD = np.linalg.cholesky(scale_DD) @ lower_DD
    drawn_DD: Values = half_DD @ half_DD.T
    return drawn_DD
