"""Evaluation by the ground truth of a world: cases about the truly most relevant item, and metrics of true relevance.

Every item is every item of the world at hand. For targets, negatives, rankings and training over the observed
catalogue (all items that occur in a log, its held-out events included; the paper's), narrow both alike:
`log = log.compact(); world = world.aligned_with(log)`.

Shapes: B cases of a batch, C cases, K places, N events, V items.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.splits import EvalCases
from unveil.evaluation.evaluator import CaseMetric
from unveil.evaluation.metrics import TruthMetric, metrics_of
from unveil.evaluation.result import column
from unveil.propensity.factors import Indices
from unveil.propensity.known import TrueWorld

TRUTH = "truth"
#: Slots whose relevance of all items is held at once.
_BLOCK = 1024


def true_relevance_metrics(world: TrueWorld, cases: EvalCases, k: int) -> dict[str, CaseMetric]:
    """Every metric of true relevance at each case's own user and step, of lists with k places or of all scores, by the
    name of its column."""

    def at(metric: TruthMetric, case_B: NDArray[np.int64], scores_BV: Tensor, top_BK: Tensor) -> Tensor:
        gamma_BV = world.relevance(cases.user_C[case_B], cases.step_C[case_B])
        return torch.from_numpy(metric(gamma_BV, scores_BV.cpu().numpy(), top_BK.cpu().numpy()))

    return {
        column(TRUTH, metric.name, k if metric.of_lists else 0): partial(at, metric)
        for metric in metrics_of(TruthMetric)
    }


def favourites_of(world: TrueWorld, user_N: Indices, step_N: Indices) -> NDArray[np.int64]:
    """argmax_i γ_sit at each of these users and steps, block by block."""
    starts = range(0, len(user_N), _BLOCK)
    best = [world.ideal_target(user_N[at : at + _BLOCK], step_N[at : at + _BLOCK]) for at in starts]
    return np.concatenate([np.zeros(0, np.int64), *best])


def true_cases(world: TrueWorld, cases: EvalCases) -> EvalCases:
    """The same questions with another answer: the item of highest γ at the case's own user and step.

    This is the paper's evaluation on true relevance: what a user who sees every item would take next.
    """
    best_C = favourites_of(world, cases.user_C, cases.step_C)
    return replace(cases, item_C=best_C.astype(cases.item_C.dtype))
