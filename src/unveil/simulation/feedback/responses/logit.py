"""The multinomial logit: utilities with luck on top."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.simulation.feedback.responses.base import Need, Offer, Probabilities, register, shares


@dataclass(frozen=True)
class MultinomialLogit:
    """p_k = exp(u_k / temperature) / Σ_j exp(u_j / temperature)."""

    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise UnveilError("out of range", where="response.temperature", found=self.temperature, expected="above 0")

    def among(self, utility_UK: NDArray[np.float64], filled_UK: NDArray[np.bool_]) -> Probabilities:
        """The shares of the filled places."""
        open_UK = np.where(filled_UK, utility_UK / self.temperature, -np.inf)
        highest_U1 = open_UK.max(1, keepdims=True)
        return shares(np.exp(open_UK - np.where(np.isfinite(highest_U1), highest_U1, 0.0)), filled_UK)


@register
@dataclass(frozen=True)
class ByScore(MultinomialLogit):
    """Utilities are the model's own scores: the user who agrees with the recommender, whichever it is."""

    name: ClassVar[str] = "logit"
    needs: ClassVar[Need] = "nothing"

    def __call__(self, offer: Offer) -> Probabilities:  # noqa: D102
        return self.among(offer.lists.score_UK.astype(np.float64), offer.lists.filled_UK)


@register
@dataclass(frozen=True)
class ByRelevance(MultinomialLogit):
    """Utilities are the logits of the true relevance γ, and to take nothing has utility 0.

    With one item in the list and temperature 1 it is taken with probability γ.
    """

    name: ClassVar[str] = "logit-relevance"
    needs: ClassVar[Need] = "world"

    def __call__(self, offer: Offer) -> Probabilities:  # noqa: D102
        gamma_UK = np.clip(offer.relevance_UK, 1e-12, 1 - 1e-12)
        logit_UK = np.log(gamma_UK) - np.log1p(-gamma_UK)
        with_nothing = [(0, 0), (0, 1)]
        utility_UK1 = np.pad(logit_UK, with_nothing)
        filled_UK1 = np.pad(offer.lists.filled_UK, with_nothing, constant_values=True)
        return self.among(utility_UK1, filled_UK1)[:, :-1]
