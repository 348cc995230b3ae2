"""What a choice model is, and where choice models are found. Shapes: B slots, V items.

A model sees the true relevance γ and what is exposed, and picks one item a slot. Whether the pick becomes an
interaction is not its affair: that needs exposure and relevance too (Y = C · O · R).
"""

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from unveil.propensity.factors import Floats
from unveil.registry import Registry

Mask = NDArray[np.bool_]

#: What is picked where there is nothing to pick from.
NOTHING = -1


class ChoiceModel(Protocol):
    """C_sit: which item the user takes, given the logits of γ, what is exposed, and one uniform number a slot."""

    name: ClassVar[str]

    def __call__(self, logit_BV: Floats, exposed_BV: Mask, uniform_B: NDArray[np.float64]) -> NDArray[np.int64]:
        """The picked item of each slot, `NOTHING` where there is none to pick from."""
        ...

    def probability(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        """P(C_sit = 1 | O_st), every item of each slot; a row of zeros where there is none to pick from."""
        ...


CHOICES: Registry[ChoiceModel] = Registry("choice model", package="unveil.simulation.choice", group="unveil.choices")
register = CHOICES.register


def told(name: str) -> str:
    """What such users do, in words: "take the best of what they see"; its name where a model does not say."""
    return str(getattr(CHOICES[name], "about", f"choose by {name}"))


def choice_model(name: str) -> ChoiceModel:
    """The choice model of that name; an unknown name suggests the nearest."""
    return CHOICES[name]()
