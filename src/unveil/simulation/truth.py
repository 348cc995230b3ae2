"""Judging by what a world knows: cases about the true favourite, and the true relevance of what is recommended.

Shapes: N events, C cases, B cases of a batch, K places of a list, V items.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.splits import EvalCases
from unveil.propensity.factors import Indices
from unveil.simulation.world import Mask, World

#: Slots whose relevance of all items is held at once.
_BLOCK = 1024


def favourites_of(world: World, user_N: Indices, step_N: Indices, among: Mask | None = None) -> NDArray[np.int64]:
    """argmax_i γ_sit at each of these users and steps, block by block; `among` leaves some items to choose from."""
    starts = range(0, len(user_N), _BLOCK)
    best = [world.ideal_target(user_N[at : at + _BLOCK], step_N[at : at + _BLOCK], among) for at in starts]
    return np.concatenate([np.zeros(0, np.int64), *best])


def true_cases(world: World, cases: EvalCases, among: Mask | None = None) -> EvalCases:
    """The same questions with another answer: the item of highest γ at the case's own user and step.

    This is the paper's evaluation on true relevance: what a user who sees every item would take next.
    """
    best_C = favourites_of(world, cases.user_C, cases.step_C, among)
    return replace(cases, item_C=best_C.astype(cases.item_C.dtype))


def judges(world: World, cases: EvalCases, k: int) -> dict[str, "TrueRelevance | Regret"]:
    """What an evaluator of these cases can be given to say of its lists of k places, by the column's name."""
    return {f"truth:Relevance@{k}": TrueRelevance(world, cases), f"truth:Regret@{k}": Regret(world, cases)}


@dataclass(frozen=True, eq=False)
class TrueRelevance:
    """Mean γ of a recommended list: (1/K) Σ_k γ of the item in place k; an empty place counts 0."""

    world: World
    cases: EvalCases

    def __call__(self, case_B: NDArray[np.int64], scores_BV: Tensor, top_BK: Tensor) -> Tensor:
        """One number a case, at its own user and step."""
        return _listed(_relevance(self.world, self.cases, case_B), top_BK)


@dataclass(frozen=True, eq=False)
class Regret:
    """Mean γ of the K items of highest γ less that of the recommended list: 0 for the best list there is."""

    world: World
    cases: EvalCases

    def __call__(self, case_B: NDArray[np.int64], scores_BV: Tensor, top_BK: Tensor) -> Tensor:
        """One number a case, at its own user and step."""
        gamma_BV = _relevance(self.world, self.cases, case_B)
        best_BK = gamma_BV.topk(min(top_BK.shape[1], gamma_BV.shape[1])).values
        return best_BK.sum(1) / top_BK.shape[1] - _listed(gamma_BV, top_BK)


def _relevance(world: World, cases: EvalCases, case_B: NDArray[Any]) -> Tensor:
    return torch.from_numpy(world.relevance(cases.user_C[case_B], cases.step_C[case_B]))


def _listed(gamma_BV: Tensor, top_BK: Tensor) -> Tensor:
    """Items that are negative stand for empty places."""
    place_BK = top_BK.long().cpu()
    return torch.where(place_BK >= 0, gamma_BV.gather(1, place_BK.clamp_min(0)), 0.0).mean(1)
