"""Intervals and paired tests over users. Nothing here knows what is being compared. Shapes: U users (or any other
paired units, such as replicates), M metrics, R resamples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CELLS = 2**22  # cells of a resamples × users table held at once


def bootstrap(
    value_UM: NDArray[Any], rng: np.random.Generator, *, resamples: int = 1000, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Percentile bootstrap of the means over users: low_M, high_M.

    Users are drawn with replacement, all metrics of a user together: mean_RM = count_RU · value_UM / U. That another
    training run would give another model is no part of the interval.
    """
    value_UM, n_users, means = np.asarray(value_UM, float), len(value_UM), []
    step = max(1, CELLS // n_users)
    for size in (min(step, resamples - start) for start in range(0, resamples, step)):
        cell_RU = rng.integers(n_users, size=(size, n_users)) + n_users * np.arange(size)[:, None]
        count_RU = np.bincount(cell_RU.ravel(), minlength=size * n_users).reshape(size, n_users)
        means.append(count_RU.astype(float) @ value_UM / n_users)
    low_M, high_M = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low_M, high_M


@dataclass(frozen=True)
class Paired:
    """How much higher a is than b over the same users: mean difference, its interval, effect size and p-value."""

    difference: float
    low: float
    high: float
    effect: float  # Cohen's d of paired differences: their mean over their standard deviation
    p: float  # two-sided, uncorrected
    n: int


def paired(a_U: NDArray[Any], b_U: NDArray[Any], *, level: float = 0.95) -> Paired:
    """Compare two systems user by user: the paired t-test, t = mean / (deviation / √U) with U − 1 degrees of freedom.

    With thousands of users it agrees with the randomisation test, and its p-values are not bounded by a number of
    resamples, which Holm's correction needs.
    """
    from scipy.special import stdtr, stdtrit

    difference_U = np.asarray(a_U, float) - np.asarray(b_U, float)
    n = len(difference_U)
    mean, deviation = float(difference_U.mean()), float(difference_U.std(ddof=1)) if n > 1 else float("nan")
    half = float(stdtrit(n - 1, (1 + level) / 2)) * deviation / np.sqrt(n) if n > 1 else float("inf")
    effect = 0.0 if mean == 0 else mean / deviation if deviation > 0 else float(np.copysign(np.inf, mean))
    if n < 2 or not difference_U.any():
        p = 1.0
    else:
        p = float(2 * stdtr(n - 1, -abs(mean) / (deviation / np.sqrt(n)))) if deviation > 0 else 0.0
    return Paired(mean, mean - half, mean + half, effect, p, n)


def ratio_interval(a_U: NDArray[Any], b_U: NDArray[Any], *, level: float = 0.95) -> tuple[float, float] | None:
    """Fieller's interval of mean(a) / mean(b), unit by unit: all r with

    |mean(a − r·b)| ≤ t · deviation(a − r·b) / √U,   t the quantile of Student's t with U − 1 degrees of freedom,

    the roots of a quadratic in r. None where mean(b) is not significantly different from 0
    (then the set has no bounds) or U < 2.
    """
    from scipy.special import stdtrit

    n = len(a_U)
    if n < 2:
        return None
    a, b = float(np.mean(a_U)), float(np.mean(b_U))
    (var_a, cov), (_, var_b) = np.cov(a_U, b_U, ddof=1) * float(stdtrit(n - 1, (1 + level) / 2)) ** 2 / n
    square, half, constant = b * b - var_b, a * b - cov, a * a - var_a
    if square <= 0:
        return None
    spread = float(np.sqrt(max(0.0, half * half - square * constant)))
    return float((half - spread) / square), float((half + spread) / square)


def holm(p_H: NDArray[Any]) -> Floats:
    """Holm's step-down correction of a family of H p-values: with p_(1) ≤ … ≤ p_(H),

    p̃_(h) = min(1, max over g ≤ h of (H − g + 1) · p_(g))

    Rejecting where p̃ < α keeps the chance of even one false claim in the family below α.
    """
    order_H = np.argsort(p_H, kind="stable")
    stepped_H = np.maximum.accumulate(np.asarray(p_H, float)[order_H] * np.arange(len(p_H), 0, -1))
    corrected_H = np.empty(len(p_H))
    corrected_H[order_H] = np.minimum(1.0, stepped_H)
    return corrected_H
