"""Pólya–Gamma variables, which make a logistic likelihood Gaussian. Shapes: N variables, J terms.

Polson, Scott and Windle (2013): e^{yψ} / (1 + e^ψ) ∝ e^{κψ} E_ω[e^{−ωψ²/2}], κ = y − ½, ω ~ PG(1, 0); and given ψ,
ω ~ PG(1, ψ). So, given ω, a Bernoulli observation y weighs like a Gaussian one of value κ/ω and precision ω.
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: Terms that are drawn; the rest of the series enters by its mean, with a standard deviation below 1e-4 of its sum's.
_TERMS = 32
_BLOCK = 1 << 15


def polya_gamma(tilt_N: Values, rng: np.random.Generator) -> Values:
    """ω_n ~ PG(1, c_n) = (1/2π²) Σ_j E_j / ((j − ½)² + c_n²/4π²), with E_j exponential of mean one."""
    blocks = [_drawn(tilt_N[at : at + _BLOCK], rng) for at in range(0, len(tilt_N), _BLOCK)]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def mean(tilt_N: Values) -> Values:
    """E[ω] = tanh(c/2) / 2c, and ¼ at c = 0."""
    small_N = np.abs(tilt_N) < 1e-4
    safe_N = np.where(small_N, 1.0, tilt_N)
    return np.asarray(np.where(small_N, 0.25, np.tanh(safe_N / 2) / (2 * safe_N)))


def _drawn(tilt_N: Values, rng: np.random.Generator) -> Values:
    pole_J = (np.arange(_TERMS) + 0.5) ** 2
    scale_NJ = 1 / (2 * np.pi**2 * (pole_J + (tilt_N[:, None] / (2 * np.pi)) ** 2))
    left_N = mean(tilt_N) - scale_NJ.sum(1)
    return np.asarray((rng.standard_exponential(scale_NJ.shape) * scale_NJ).sum(1) + left_N)
