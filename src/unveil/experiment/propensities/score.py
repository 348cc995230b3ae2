"""How near an estimated propensity is to the truth of a world, in figures. Shapes: M slots, V items, B bins."""

from dataclasses import dataclass

import numpy as np
import torch

from unveil.experiment.propensities.truth import Truth, Values
from unveil.propensity.base import PropensityModel
from unveil.propensity.calibration import BINS, Calibration, equal_mass
from unveil.propensity.weights import diagnose, inverse

#: Items of each slot, most relevant first, among which exposure matters most.
TOP = 30
#: θ is clipped from below in weights, as the presets clip it.
CLIP = 0.02
_K = 10


@dataclass(frozen=True)
class Score:
    """Figures of one propensity at the slots of a truth.

    Correlations are of log θ̂ with log θ: over all items, over the 30 most relevant of each slot, over the items
    taken. `mass` is Σ θ̂ / Σ θ; `ece` the calibration error as a share of what is exposed; `log_loss` in nats a slot
    above that of the truth. `misplaced` is the share of the weight 1 / θ̂ of the events taken that stands elsewhere
    than by the truth, `ess` what the weights leave of the events. `liked` is the mean relevance logit of the ten items
    ranked first if P(taken) were known exactly and divided by θ̂, `gap` the share of the way from P to P / θ.
    """

    correlation: float
    top: float
    taken: float
    mass: float
    ece: float
    log_loss: float
    misplaced: float
    ess: float
    liked: float
    gap: float
    curve: Calibration


def scored(model: PropensityModel, truth: Truth) -> Score:
    """All figures of a fitted propensity."""
    theta_MV = model.of_all(truth.slots).double().numpy()
    own_M = model(truth.slots).double().numpy()
    true_M = np.take_along_axis(truth.theta_MV, truth.slots.item_M.numpy()[:, None], 1)[:, 0]
    found_MV, true_MV, top_MK = np.log(theta_MV), np.log(truth.theta_MV), truth.top(TOP)
    curve, mass, ece = _calibration(theta_MV.ravel(), truth.theta_MV.ravel())
    weight_M, ideal_M = (inverse(torch.from_numpy(each), CLIP) for each in (own_M, true_M))
    liked, gap = closed(truth, found_MV)
    return Score(
        correlation=correlation(found_MV, true_MV),
        top=correlation(*(np.take_along_axis(each, top_MK, 1) for each in (found_MV, true_MV))),
        taken=correlation(np.log(own_M), np.log(true_M)),
        mass=mass,
        ece=ece,
        log_loss=_loss(theta_MV, truth.theta_MV) - _loss(truth.theta_MV, truth.theta_MV),
        misplaced=float((weight_M / weight_M.sum() - ideal_M / ideal_M.sum()).abs().sum() / 2),
        ess=diagnose(weight_M).ess_share,
        liked=liked,
        gap=gap,
        curve=curve,
    )


def correlation(one: Values, other: Values) -> float:
    """Pearson's; 0 where one of the two does not vary."""
    a, b = one.ravel() - one.mean(), other.ravel() - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-9 * len(a) else 0.0


def closed(truth: Truth, found_MV: Values) -> tuple[float, float]:
    """How relevant the ten first by P(taken) / θ̂ are, and where that lies from P to P / θ."""
    taken_MV = truth.log_taken()
    naive, ideal, liked = (
        relevance_of_first(taken_MV - shift, truth.logit_MV) for shift in (0.0, np.log(truth.theta_MV), found_MV)
    )
    return liked, (liked - naive) / (ideal - naive) if ideal > naive else 0.0


def relevance_of_first(score_MV: Values, logit_MV: Values) -> float:
    """The mean relevance logit of the ten items of highest score of each slot."""
    first_MK = np.argsort(-score_MV, axis=1, kind="stable")[:, :_K]
    return float(np.take_along_axis(logit_MV, first_MK, 1).mean())


def _loss(theta_MV: Values, true_MV: Values) -> float:
    """E[−log-likelihood of what is exposed at a slot] under the truth."""
    unseen_MV = np.log1p(-np.minimum(theta_MV, 1 - 1e-7))
    return float(-(true_MV * np.log(theta_MV) + (1 - true_MV) * unseen_MV).sum(1).mean())


def _calibration(theta: Values, true: Values) -> tuple[Calibration, float, float]:
    """Bins of equal promised mass: what is promised, and what is true, there; total mass; error."""
    bins = equal_mass(theta, np.ones_like(theta), BINS)
    promised_B, true_B, size_B = (np.bincount(bins, each, BINS) for each in (theta, true, np.ones_like(theta)))
    there, total = size_B > 0, float(true.sum())
    curve = Calibration(
        (promised_B[there] / size_B[there]).tolist(),
        (true_B[there] / size_B[there]).tolist(),
        promised_B[there].tolist(),
    )
    return curve, float(promised_B.sum()) / total, float(np.abs(promised_B - true_B).sum()) / total
