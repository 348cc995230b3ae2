"""Users who take what they like, and nothing where they like nothing: only a world knows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unveil.simulation.choice import choice_model
from unveil.simulation.feedback.responses.base import Need, Offer, Probabilities, register


@register
@dataclass(frozen=True)
class Relevant:
    """p_k = P(k is chosen from the list) · γ_k, as the worlds' logs are drawn: Y = C · O · R with the list exposed.

    `choice` is a choice model of the worlds: with rational_exposed the user looks at the most relevant item of the
    list, takes it with probability γ, and else nothing.
    """

    choice: str = "rational_exposed"

    name: ClassVar[str] = "relevant"
    needs: ClassVar[Need] = "world"

    def __post_init__(self) -> None:
        choice_model(self.choice)

    def __call__(self, offer: Offer) -> Probabilities:  # noqa: D102
        gamma_UK = np.clip(offer.relevance_UK, 1e-12, 1 - 1e-12)
        logit_UK = (np.log(gamma_UK) - np.log1p(-gamma_UK)).astype(np.float32)
        chosen_UK = choice_model(self.choice).probability(logit_UK, offer.lists.filled_UK)
        return np.where(offer.lists.filled_UK, chosen_UK * offer.relevance_UK, 0.0)
