"""Liking that is learnt together with exposure, from choices and, where there are, ratings.

Shapes: N takes, B takes of a batch, S items looked at.
"""

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from unveil.propensity.choices.tables import Tables
from unveil.propensity.choices.takes import Takes


class LearntLiking(nn.Module):
    """f_si = centre + b_s + c_i + ⟨P_s, Q_i⟩, always; j is better than i with σ((f_j − f_i) / sharpness).

    Ratings are r = f_si + ε with ε normal, its variance learnt too. Without ratings the scale of f is that of the
    sharpness.
    """

    settled: ClassVar[bool] = False

    def __init__(
        self, takes: Takes, width: int, sharpness: float, *, penalty: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        users, items, _ = takes.shape
        self.sharpness = sharpness
        self.count_N = torch.from_numpy(takes.count_N.astype(np.float32))
        self.rating_N, self.scatter_N = (
            None if each is None else torch.from_numpy(each.astype(np.float32))
            for each in (takes.rating_N, takes.scatter_N)
        )
        centre = 0.0 if takes.rating_N is None else float(np.average(takes.rating_N, weights=takes.count_N))
        self.f = Tables((users, items, 1), width, centre, penalty=penalty, generator=generator)
        self.log_sd = nn.Parameter(torch.tensor(0.0), requires_grad=self.rating_N is not None)

    def better(self, user_B: Tensor, item_B: Tensor, item_S: Tensor) -> Tensor:
        """σ((f_sj − f_si) / sharpness) of every item j looked at."""
        always_B = torch.zeros_like(user_B)
        ahead_BS = self.f.among(user_B, always_B, item_S) - self.f.own(user_B, item_B, always_B)[:, None]
        return torch.sigmoid(ahead_BS / self.sharpness)

    def loss(self, user_B: Tensor, item_B: Tensor, nth_B: Tensor) -> Tensor:
        """Σ over the ratings of these takes of (r − f)² / 2σ² + log σ."""
        if self.rating_N is None or self.scatter_N is None:
            return torch.zeros(())
        off_B = self.rating_N[nth_B] - self.f.own(user_B, item_B, torch.zeros_like(user_B))
        square_B = self.count_N[nth_B] * off_B.square() + self.scatter_N[nth_B]
        return (square_B / (2 * torch.exp(2 * self.log_sd)) + self.count_N[nth_B] * self.log_sd).sum()

    def size(self) -> Tensor:
        """Minus the logarithm of the prior, up to a constant."""
        return self.f.size()
