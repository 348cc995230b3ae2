"""How a value comes about from a logit: as a rating with noise, or as a yes or no. Shapes: N tuples."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unveil.models.factorization.polya_gamma import polya_gamma

Values = NDArray[np.float64]


class Likelihood(Protocol):
    """P(y | ψ), in the Gaussian form that the conditionals of the factors need."""

    def centre(self, value_N: Values) -> float:
        """The one ψ that suits all values best."""

    def gaussian(self, value_N: Values, logit_N: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """Values and precisions such that y weighs like a Gaussian observation of ψ."""

    def predicted(self, logit_N: Values) -> Values:
        """E[y | ψ]."""


@dataclass(frozen=True)
class Normal:
    """y ~ N(ψ, 1/α); the precision α ~ Gamma(1, 1) is drawn anew given the residuals."""

    def centre(self, value_N: Values) -> float:
        """The mean."""
        return float(value_N.mean())

    def gaussian(self, value_N: Values, logit_N: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """α | rest ~ Gamma(1 + N/2, 1 + ½ Σ (y − ψ)²); the values are themselves."""
        residual = float(((value_N - logit_N) ** 2).sum())
        precision = rng.gamma(1 + len(value_N) / 2, 1 / (1 + residual / 2))
        return value_N, np.full(len(value_N), precision)

    def predicted(self, logit_N: Values) -> Values:
        """ψ itself."""
        return logit_N


@dataclass(frozen=True)
class Bernoulli:
    """y ~ Ber(σ(ψ)), made Gaussian by Pólya–Gamma variables."""

    def centre(self, value_N: Values) -> float:
        """log(ȳ / (1 − ȳ))."""
        share = float(value_N.mean())
        return float(np.log(share / (1 - share)))

    def gaussian(self, value_N: Values, logit_N: Values, rng: np.random.Generator) -> tuple[Values, Values]:
        """ω | rest ~ PG(1, ψ); y weighs like (y − ½)/ω observed with precision ω."""
        precision_N = polya_gamma(logit_N, rng)
        return (value_N - 0.5) / precision_N, precision_N

    def predicted(self, logit_N: Values) -> Values:
        """σ(ψ)."""
        return np.asarray(expit(logit_N))
