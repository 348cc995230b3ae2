"""What a world adds to an evaluation: judges that know the true relevance of every item at a case.

Shapes: B cases of a batch, K places of a list, V items.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.splits import EvalCases
from unveil.evaluation.metrics import TruthMetric, truth_metrics
from unveil.evaluation.result import column

TRUTH = "truth"


class Relevances(Protocol):
    """What is asked of a world: γ at given users and steps."""

    def relevance(self, user_B: NDArray[Any], step_B: NDArray[Any]) -> NDArray[np.float32]:
        """γ_BV of every item."""


@dataclass(frozen=True, eq=False)
class TruthJudge:
    """A metric of true relevance, at each case's own user and step."""

    metric: TruthMetric
    world: Relevances
    cases: EvalCases

    def __call__(self, case_B: NDArray[np.int64], scores_BV: Tensor, top_BK: Tensor) -> Tensor:
        """One number a case."""
        gamma_BV = self.world.relevance(self.cases.user_C[case_B], self.cases.step_C[case_B])
        return torch.from_numpy(self.metric(gamma_BV, scores_BV.cpu().numpy(), top_BK.cpu().numpy()))


def judges(world: Relevances, cases: EvalCases, k: int) -> dict[str, TruthJudge]:
    """Every metric of true relevance, of lists with k places or of all scores, by the name of its column."""
    return {
        column(TRUTH, metric.name, k if metric.of_lists else 0): TruthJudge(metric, world, cases)
        for metric in truth_metrics()
    }
