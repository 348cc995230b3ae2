"""Users who look from the top."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unveil.errors import UnveilError
from unveil.simulation.feedback.responses.base import Need, Offer, Probabilities, register, shares


@register
@dataclass(frozen=True)
class Logarithmic:
    """p_k ∝ 1 / log2(1 + k), k = 1 at the top: attention that fades as the discount of NDCG does."""

    name: ClassVar[str] = "position"
    needs: ClassVar[Need] = "nothing"

    def __call__(self, offer: Offer) -> Probabilities:  # noqa: D102
        place_K = np.arange(1, offer.lists.top_UK.shape[1] + 1)
        return shares(1 / np.log2(1 + place_K), offer.lists.filled_UK)


@register
@dataclass(frozen=True)
class Geometric:
    """p_k ∝ patience^(k − 1): at each place the user goes on to the next with probability `patience`."""

    patience: float = 0.7

    name: ClassVar[str] = "geometric"
    needs: ClassVar[Need] = "nothing"

    def __post_init__(self) -> None:
        if not 0 < self.patience <= 1:
            expected = "above 0, at most 1"
            raise UnveilError("out of range", where="response.patience", found=self.patience, expected=expected)

    def __call__(self, offer: Offer) -> Probabilities:  # noqa: D102
        place_K = np.arange(offer.lists.top_UK.shape[1])
        return shares(self.patience**place_K, offer.lists.filled_UK)
