"""The rational user: always the best of what they look at. Shapes: B slots, V items."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unveil.propensity.factors import Floats
from unveil.simulation.choice.base import NOTHING, Mask, register


class Rational:
    """Takes the item of highest γ; the first in the catalogue where several are equal."""

    among_exposed: ClassVar[bool]

    def __call__(self, logit_BV: Floats, exposed_BV: Mask, uniform_B: NDArray[Any]) -> NDArray[np.int64]:
        """Argmax of γ over what the user looks at; nothing is left to chance."""
        if not self.among_exposed:
            return np.asarray(logit_BV.argmax(1))
        item_B = np.where(exposed_BV, logit_BV, -np.inf).argmax(1)
        return np.where(exposed_BV[np.arange(len(item_B)), item_B], item_B, NOTHING)

    def probability(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        """One for the pick."""
        item_B = self(logit_BV, exposed_BV, np.empty(0))
        return np.asarray(np.arange(logit_BV.shape[1]) == item_B[:, None], dtype=np.float64)


@register
@dataclass(frozen=True)
class RationalExposed(Rational):
    """The best of what is exposed: the paper's experiment."""

    name: ClassVar[str] = "rational_exposed"
    about: ClassVar[str] = "take the best of what they see"
    among_exposed: ClassVar[bool] = True


@register
@dataclass(frozen=True)
class RationalAll(Rational):
    """The best of all, exposed or not: the paper's theory, where the choice ignores exposure."""

    name: ClassVar[str] = "rational_all"
    about: ClassVar[str] = "take the best of all there is, as if they saw everything"
    among_exposed: ClassVar[bool] = False
