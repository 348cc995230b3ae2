"""Pólya–Gamma variables, which make a logistic likelihood Gaussian. Shapes: N variables, J terms.

Polson, Scott and Windle (2013): e^{yψ} / (1 + e^ψ) ∝ e^{κψ} E_ω[e^{−ωψ²/2}], κ = y − ½, ω ~ PG(1, 0); and given ψ,
ω ~ PG(1, ψ). So, given ω, a Bernoulli observation y weighs like a Gaussian one of value κ/ω and precision ω.
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: Terms that are drawn; the others enter by their mean, and take 0.2% of the standard deviation with them.
_TERMS = 16
#: Few enough to stay in the processor's cache.
_BLOCK = 1 << 14


def polya_gamma(tilt_N: Values, rng: np.random.Generator) -> Values:
    """ω_n ~ PG(1, c_n) = (1/2π²) Σ_j E_j / ((j − ½)² + c_n²/4π²), with E_j exponential of mean one."""
    blocks = (_drawn(tilt_N[at : at + _BLOCK], rng) for at in range(0, len(tilt_N), _BLOCK))
    return np.concatenate([np.zeros(0), *blocks])


def mean(tilt_N: Values) -> Values:
    """E[ω] = tanh(c/2) / 2c, and ¼ at c = 0."""
    small_N = np.abs(tilt_N) < 1e-4
    safe_N = np.where(small_N, 1.0, tilt_N)
    return np.asarray(np.where(small_N, 0.25, np.tanh(safe_N / 2) / (2 * safe_N)))


def _drawn(tilt_N: Values, rng: np.random.Generator) -> Values:
    """The mean, and of each drawn term how far E_j is from its own."""
    square_N = ((tilt_N / (2 * np.pi)) ** 2).astype(np.float32)
    apart_N = np.zeros(len(tilt_N), np.float32)
    for term in range(_TERMS):
        apart_N += (rng.standard_exponential(len(tilt_N), np.float32) - 1) / (square_N + np.float32((term + 0.5) ** 2))
    return np.asarray(mean(tilt_N) + apart_N / (2 * np.pi**2))
