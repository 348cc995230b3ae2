"""How good probabilities of rare events are: ranking, log-loss, calibration; on pairs that were drawn, as if all were.

Shapes: M pairs, B bins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from unveil.propensity.impression_pairs import Pairs
from unveil.propensity.time_of_day import ExposureModel

Floats = NDArray[np.float64]
BINS = 15


@dataclass(frozen=True)
class Calibration:
    """Pairs in bins of equal predicted mass: what was predicted there, and what was shown."""

    predicted: Sequence[float]  # mean θ of each bin
    observed: Sequence[float]  # share of its pairs that were shown
    impressions: Sequence[float]  # how many were expected there


@dataclass(frozen=True)
class Quality:
    """Figures of one model on held-out pairs.

    `log_loss` is in nats for each impression, over all its V pairs; `ece` is the expected calibration error over the
    bins as a share of what was shown (0: every bin has what it was promised; 0.2: a fifth of it stands elsewhere);
    `mass` is what was promised in all over what was shown.
    """

    auc: float
    log_loss: float
    ece: float
    mass: float
    calibration: Calibration


def judged(theta_M: NDArray[Any], pairs: Pairs) -> Quality:
    """All figures; pairs weigh as many as they stand for."""
    theta, weight = np.asarray(theta_M, np.float64), pairs.weight_M
    shown = float(pairs.shown_M.sum())
    loss_M = -np.where(pairs.shown_M, np.log(theta), np.log1p(-np.minimum(theta, 1 - 1e-12)))
    bins = equal_mass(theta, weight, BINS)
    promised_B, seen_B, size_B = (
        np.bincount(bins, weights=each, minlength=BINS) for each in (weight * theta, weight * pairs.shown_M, weight)
    )
    there = size_B > 0
    return Quality(
        auc=auc(theta, pairs.shown_M, weight),
        log_loss=float((weight * loss_M).sum() / shown),
        ece=float(np.abs(promised_B - seen_B).sum() / shown),
        mass=float(promised_B.sum() / shown),
        calibration=Calibration(
            (promised_B[there] / size_B[there]).tolist(),
            (seen_B[there] / size_B[there]).tolist(),
            promised_B[there].tolist(),
        ),
    )


def auc(theta_M: Floats, shown_M: NDArray[np.bool_], weight_M: Floats) -> float:
    """P(a pair that was shown has a higher θ than one that was not), ties counting half, pairs weighing."""
    _, group_M = np.unique(theta_M, return_inverse=True)
    positive = np.bincount(group_M, weights=weight_M * shown_M)
    negative = np.bincount(group_M, weights=weight_M * ~shown_M)
    below = np.cumsum(negative) - negative / 2
    return float((positive * below).sum() / (positive.sum() * negative.sum()))


def equal_mass(theta_M: Floats, weight_M: Floats, bins: int) -> NDArray[np.int64]:
    """The bin of each pair: bins hold equal predicted mass, and equal θ share a bin."""
    order = np.argsort(theta_M, kind="stable")
    mass = np.cumsum((weight_M * theta_M)[order])
    place = np.minimum((bins * mass / mass[-1]).astype(np.int64), bins - 1)
    value, first = np.unique(theta_M[order], return_index=True)
    return np.asarray(place[first][np.searchsorted(value, theta_M)])


def table(qualities: Mapping[str, Quality]) -> dict[str, dict[str, float]]:
    """The figures without the curves, by model."""
    names = ("auc", "log_loss", "ece", "mass")
    return {model: {name: getattr(quality, name) for name in names} for model, quality in qualities.items()}


#: Most bins of the curve, and the impressions that each has to be promised.
MOST, EACH = 20, 100


def calibrated(model: ExposureModel, pairs: Pairs) -> ExposureModel:
    """The model with the curve through (logit of the mean promise, logit of what was shown) of bins of equal promise.

    Where a bin holds less than one below it the two are pooled (isotonic regression), so that the curve never falls.
    """
    raw = replace(model, curve_B2=IDENTITY)
    psi_M = raw.psi(pairs.user_M, pairs.item_M, pairs.day_M, pairs.hour_M).astype(np.float64)
    bins = max(1, min(MOST, int(pairs.shown_M.sum()) // EACH))
    theta_M, weight_M = expit(psi_M), pairs.weight_M
    bin_M = equal_mass(theta_M, weight_M, bins)
    promised_B, seen_B, size_B = (
        np.bincount(bin_M, weights=each, minlength=bins)
        for each in (weight_M * theta_M, weight_M * pairs.shown_M, weight_M)
    )
    there = size_B > 0
    rate_B = isotonic_regression((seen_B[there] + 0.5) / (size_B[there] + 1), weights=size_B[there]).x
    points = logit(promised_B[there] / size_B[there]), logit(rate_B)
    return replace(model, curve_B2=np.stack(points, axis=1).astype(np.float32))


#: The curve of a model that is left as it is: beyond its ends a curve rises by one for one.
IDENTITY = np.zeros((1, 2), np.float32)
