"""How much of a propensity a log bears out, by what preferences cannot explain.

Shapes: N training events, P pairs of events of one user, M slots.
"""

from copy import copy
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from unveil.data.sequences import Sequences
from unveil.estimators.learning import events
from unveil.propensity.base import PropensityModel

Contrast = NDArray[np.float64]


def borne_out(propensity: PropensityModel, train: Sequences, lowest: float = 0.0) -> float:
    """τ in [0, 1] of P(i | s, t) ∝ θ_sit^τ · e^f_si, by the conditional likelihood of swaps, f left open.

    Let a user take i at t and k at u. Of the two ways round, this one has the odds e^(τ d) with
    d = log θ_sit + log θ_sku − log θ_skt − log θ_siu: the user's preferences f, and all else that does not change with
    the step, cancel. τ maximises Σ log σ(τ d) − τ²/2 over pairs of events: without evidence it is 0. A propensity
    counted from events must not be judged by them: each half of the users is judged by θ fitted on the other half. θ
    is raised to `lowest` from below, as it is where it is used.
    """
    contrast_P = np.concatenate(
        [contrasts(copy(propensity).fit(_half(train, 1 - side)), _half(train, side), lowest) for side in (0, 1)]
    )
    return round(most_likely(contrast_P), 3)  # as near as the root is sought; the same on every machine


def contrasts(propensity: PropensityModel, train: Sequences, lowest: float = 0.0) -> Contrast:
    """d of every pair: an event of the earlier half of a history with one of the later half."""
    half_U = train.length_U // 2
    place_N = np.arange(len(train)) - np.repeat(train.offset_U1[:-1], train.length_U)
    early_P = np.flatnonzero(place_N < np.repeat(half_U, train.length_U))
    late_P = early_P + np.repeat(half_U, train.length_U)[early_P]
    one, other = (events(train).at(torch.from_numpy(place_P)) for place_P in (early_P, late_P))
    every = (one, other, replace(one, item_M=other.item_M), replace(other, item_M=one.item_M))
    log = [propensity(slots).double().clamp_min(lowest).log().numpy() for slots in every]
    return np.asarray(log[0] + log[1] - log[2] - log[3])


def most_likely(contrast_P: Contrast) -> float:
    """The τ in [0, 1] at which Σ log σ(τ d) − τ²/2 is largest: where its slope, which falls, is 0."""

    def slope(tau: float) -> float:
        return float((contrast_P * expit(-tau * contrast_P)).sum()) - tau

    if slope(0.0) <= 0:
        return 0.0
    return 1.0 if slope(1.0) >= 0 else float(brentq(slope, 0.0, 1.0, xtol=1e-4))


def _half(train: Sequences, side: int) -> Sequences:
    """The events of every other user."""
    stop_U = np.where(np.arange(train.n_users) % 2 == side, train.length_U, 0)
    return train.cut(np.zeros_like(stop_U), stop_U)
