"""Users who go with the crowd."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unveil.errors import UnveilError
from unveil.simulation.feedback.responses.base import Need, Offer, Probabilities, register, shares


@register
@dataclass(frozen=True)
class Popular:
    """p_k ∝ (count + 1)^strength, counted in the log so far: 0 is uniform, 1 follows the crowd, more exaggerates it."""

    strength: float = 1.0

    name: ClassVar[str] = "popular"
    needs: ClassVar[Need] = "nothing"

    def __post_init__(self) -> None:
        if not np.isfinite(self.strength):
            raise UnveilError("out of range", where="response.strength", found=self.strength, expected="a number")

    def __call__(self, offer: Offer) -> Probabilities:  # noqa: D102
        log_UK = self.strength * np.log1p(offer.count_V)[offer.lists.top_UK]
        highest_U1 = np.where(offer.lists.filled_UK, log_UK, -np.inf).max(1, keepdims=True)
        return shares(np.exp(np.minimum(log_UK - highest_U1, 0.0)), offer.lists.filled_UK)
