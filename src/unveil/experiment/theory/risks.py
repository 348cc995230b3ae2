"""The losses as the trainer computes them: real estimators, real slots, the one loss, the trainer's normaliser.

Shapes: S slots of the world, M events of a log, G logs, V items.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal, cloze_risk
from unveil.experiment.theory.laid_open import LaidOpen, Table
from unveil.experiment.theory.masking import Masking
from unveil.experiment.theory.scores import Scores
from unveil.training.learner import normaliser


def risk(estimator: Estimator, slots: Slots, laid: LaidOpen, scores: Scores, masking: Masking | None = None) -> float:
    """The risk of one log in one batch; with `masking`, its mean over what is hidden.

    It is divided by the slots of the world, a constant, for all but the self-normalised: the mean weight of a batch
    times its slots, and so the sum of its weights. A batch without slots is passed over: it adds nothing.
    """
    if not len(slots):
        return 0.0
    signal = estimator(slots)
    if masking is not None:
        signal = replace(signal, weight_M=signal.weight_M * masking.chance(slots))
    expected = len(slots) if estimator.self_normalised else len(laid)
    divisor, _ = normaliser(estimator, signal, len(slots), expected)
    return float(cloze_risk(*scores.at(laid.rows(slots)), signal, normaliser=divisor))


def risks(
    estimator: Estimator,
    item_GS: NDArray[Any],
    laid: LaidOpen,
    scores: Scores,
    masking: Masking | None = None,
) -> NDArray[np.float64]:
    """The risk of every log."""
    return np.array([risk(estimator, laid.slots(item_S), laid, scores, masking) for item_S in item_GS])


def weighted_risk(weight_SV: Table, scores: Scores, divisor: float) -> float:
    """The same loss with every item a target at every slot, each by its weight: a risk that is an expectation."""
    every = torch.arange(len(weight_SV))
    total = 0.0
    for item in range(weight_SV.shape[1]):
        signal = Signal(torch.full_like(every, item), torch.from_numpy(weight_SV[:, item]))
        total += float(cloze_risk(*scores.at(every), signal, normaliser=divisor))
    return total
