"""Calibration: two numbers that make a model promise on held-out days what they hold (Platt's scaling)."""

from dataclasses import replace

import numpy as np
from scipy.special import expit, logit

from unveil.propensity.impressions.model import ExposureModel
from unveil.propensity.impressions.pairs import Pairs

_STEPS = 50


def platt(model: ExposureModel, pairs: Pairs) -> ExposureModel:
    """θ = σ(scale · ψ + shift) with the scale and shift of least weighted log-loss on these pairs, by Newton."""
    raw = replace(model, calibration=(1.0, 0.0))
    theta_M = raw.theta(pairs.user_M, pairs.item_M, pairs.day_M, pairs.hour_M).astype(np.float64)
    x_M2 = np.stack([logit(np.clip(theta_M, 1e-12, 1 - 1e-12)), np.ones(len(pairs))], axis=1)
    at = np.array([1.0, 0.0])
    for _ in range(_STEPS):
        p_M = expit(x_M2 @ at)
        gradient = x_M2.T @ (pairs.weight_M * (p_M - pairs.shown_M))
        hessian = (x_M2 * (pairs.weight_M * p_M * (1 - p_M))[:, None]).T @ x_M2
        step = np.linalg.solve(hessian + 1e-9 * np.eye(2), gradient)
        at = at - np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return replace(model, calibration=(float(at[0]), float(at[1])))
