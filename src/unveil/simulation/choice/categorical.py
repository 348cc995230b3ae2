"""The user whose liking is a matter of chance: the more relevant, the likelier. Shapes: B slots, V items."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.propensity.factors import Floats, sigmoid
from unveil.simulation.choice.base import NOTHING, Mask, register


class Categorical:
    """Takes item i with probability γ_i / Σ_j γ_j, over all items or over the exposed ones."""

    among_exposed: ClassVar[bool]

    def __call__(self, logit_BV: Floats, exposed_BV: Mask, uniform_B: NDArray[np.float64]) -> NDArray[np.int64]:
        """The item at which the running sum of γ passes the uniform number's share of the total."""
        mass_BV = np.cumsum(self._weight(logit_BV, exposed_BV), axis=1)
        total_B = mass_BV[:, -1]
        # Rounding must not carry the share up to the whole: beyond it there is no item.
        share_B = np.minimum(uniform_B * total_B, np.nextafter(total_B, 0))
        item_B = (mass_BV <= share_B[:, None]).sum(1)
        return np.where(total_B > 0, item_B, NOTHING)

    def probability(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        """γ_i / Σ_j γ_j."""
        weight_BV = self._weight(logit_BV, exposed_BV)
        total_B1 = weight_BV.sum(1, keepdims=True)
        return np.asarray(np.divide(weight_BV, total_B1, out=np.zeros_like(weight_BV), where=total_B1 > 0))

    def _weight(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        gamma_BV = sigmoid(logit_BV).astype(np.float64)
        return gamma_BV * exposed_BV if self.among_exposed else gamma_BV


@register
@dataclass(frozen=True)
class CategoricalExposed(Categorical):
    """By chance among what is exposed."""

    name: ClassVar[str] = "categorical_exposed"
    about: ClassVar[str] = "take by chance among what they see, likelier what they like"
    among_exposed: ClassVar[bool] = True


@register
@dataclass(frozen=True)
class CategoricalAll(Categorical):
    """By chance among all items, exposed or not."""

    name: ClassVar[str] = "categorical_all"
    about: ClassVar[str] = "take by chance among all there is, likelier what they like"
    among_exposed: ClassVar[bool] = False
