"""How good probabilities of rare events are: AUC, log-loss, calibration, on sampled pairs that stand for all.

Shapes: M pairs, B bins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from unveil.propensity.impression_pairs import Floats, Pairs
from unveil.propensity.time_of_day import ExposureModel

#: Bins of the calibration error; most bins of the calibration curve, and the impressions that each needs.
BINS, MOST_BINS, EACH_BIN = 15, 20, 100
#: The curve of a model without calibration: beyond its ends a curve has slope 1.
IDENTITY = np.zeros((1, 2), np.float32)


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
    bins as a share of the impressions (0: every bin has what was predicted; 0.2: a fifth is in other bins); `mass` is
    the predicted number of impressions over the true one.
    """

    auc: float
    log_loss: float
    ece: float
    mass: float
    calibration: Calibration


def quality_of(theta_M: NDArray[Any], pairs: Pairs) -> Quality:
    """All figures, each pair with its weight."""
    theta, weight = np.asarray(theta_M, np.float64), pairs.weight_M
    loss_M = -np.where(pairs.shown_M, np.log(theta), np.log1p(-np.minimum(theta, 1 - 1e-12)))
    log_loss = float((weight * loss_M).sum() / float(pairs.shown_M.sum()))
    curve, ece, mass = calibration(theta, pairs.shown_M, weight)
    return Quality(auc(theta, pairs.shown_M, weight), log_loss, ece, mass, curve)


def calibration(theta_M: Floats, shown_M: NDArray[Any], weight_M: Floats) -> tuple[Calibration, float, float]:
    """The bins, the calibration error and the mass; what was shown may be a probability."""
    predicted_B, seen_B, size_B = _binned(theta_M, shown_M, weight_M, BINS)
    there, shown = size_B > 0, float(shown_M.sum())
    curve = Calibration(
        (predicted_B[there] / size_B[there]).tolist(),
        (seen_B[there] / size_B[there]).tolist(),
        predicted_B[there].tolist(),
    )
    return curve, float(np.abs(predicted_B - seen_B).sum() / shown), float(predicted_B.sum() / shown)


def auc(theta_M: Floats, shown_M: NDArray[np.bool_], weight_M: Floats) -> float:
    """P(a pair that was shown has a higher θ than one that was not), ties counting half, weighted."""
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


def _binned(theta_M: Floats, shown_M: NDArray[Any], weight_M: Floats, bins: int) -> Iterator[Floats]:
    """Of each bin: the predicted number of impressions, the true one, and the number of pairs."""
    bin_M = equal_mass(theta_M, weight_M, bins)
    for each_M in (weight_M * theta_M, weight_M * shown_M, weight_M):
        yield np.asarray(np.bincount(bin_M, weights=each_M, minlength=bins), np.float64)


def calibrate(model: ExposureModel, pairs: Pairs) -> ExposureModel:
    """The model with the curve through (logit of the mean θ, logit of the observed rate) of bins of equal mass.

    Isotonic regression: a bin with a smaller rate than one below it is pooled with it, so that the curve never falls.
    """
    raw = replace(model, curve_B2=IDENTITY)
    psi_M = raw.psi(pairs.user_M, pairs.item_M, pairs.day_M, pairs.hour_M).astype(np.float64)
    bins = max(1, min(MOST_BINS, int(pairs.shown_M.sum()) // EACH_BIN))
    predicted_B, seen_B, size_B = _binned(expit(psi_M), pairs.shown_M, pairs.weight_M, bins)
    there = size_B > 0
    rate_B = isotonic_regression((seen_B[there] + 0.5) / (size_B[there] + 1), weights=size_B[there]).x
    points = logit(predicted_B[there] / size_B[there]), logit(rate_B)
    return replace(model, curve_B2=np.stack(points, axis=1).astype(np.float32))
