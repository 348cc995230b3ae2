"""Calibration: a rising curve that makes a model promise on held-out days what they hold. Shapes: M pairs, B bins."""

from dataclasses import replace

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from unveil.propensity.impressions.judge import equal_mass
from unveil.propensity.impressions.model import ExposureModel
from unveil.propensity.impressions.pairs import Pairs

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
