"""The paper's user: any item of the list, at random."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unveil.simulation.feedback.responses.base import Need, Offer, Probabilities, register, shares


@register
@dataclass(frozen=True)
class Uniform:
    """p_k = 1 / (places filled): the feedback loop of the paper (section 5.2, RQ5)."""

    name: ClassVar[str] = "uniform"
    needs: ClassVar[Need] = "nothing"

    def __call__(self, offer: Offer) -> Probabilities:  # noqa: D102
        return shares(np.ones(offer.lists.top_UK.shape), offer.lists.filled_UK)
