"""What the model says, held fixed: the propositions speak of the loss of given scores. Shapes: S slots, D, M, V."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from unveil.experiment.theory.laid_open import LaidOpen, Table
from unveil.models.base import Output


@dataclass(frozen=True, eq=False)
class Scores:
    """f at every slot, in the three factors that a model hands to the loss: h_SD · table_VDᵀ + bias_V."""

    h_SD: Tensor
    table_VD: Tensor
    bias_V: Tensor

    @classmethod
    def informed(cls, laid: LaidOpen, seed: int, known: float = 0.5, width: int = 4) -> Self:
        """f = known · (logit of γ) + noise: a model that has learnt some of the truth, in double precision.

        No proposition depends on what the scores are; but with scores that know nothing, mass on a wrong item would
        cost no more than on the right one, and some biases would not show.
        """
        truth = laid.world.relevance_logits
        rng = torch.Generator().manual_seed(seed)
        row_SK = torch.from_numpy(truth.P_UK[laid.user_S] * truth.W_TK[laid.step_S]).double()
        noise_SD = torch.randn(len(laid), width, generator=rng, dtype=torch.float64)
        noise_VD = torch.randn(len(truth.Q_VK), width, generator=rng, dtype=torch.float64) / width**0.5
        table_VD = torch.hstack([torch.from_numpy(truth.Q_VK).double(), noise_VD])
        return cls(torch.hstack([known * row_SK, noise_SD]), table_VD, torch.zeros(len(table_VD), dtype=torch.float64))

    def at(self, row_M: Tensor) -> Output:
        """What the loss is given for these slots."""
        return Output(self.h_SD[row_M], self.table_VD, self.bias_V)

    def loss(self) -> Table:
        """−log softmax(f)[i] of every slot and item, by the plain formula."""
        logit_SV = self.h_SD @ self.table_VD.T + self.bias_V
        return (-torch.log_softmax(logit_SV, 1)).numpy()
