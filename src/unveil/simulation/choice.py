"""How a user picks one item a slot from γ and what is exposed; an interaction is Y = C · O · R. B slots, V items."""

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from unveil.propensity.factors import Floats, sigmoid
from unveil.registry import Registry

Mask = NDArray[np.bool_]

#: What is picked where there is nothing to pick from.
NOTHING = -1


class ChoiceModel(Protocol):
    """C_sit: which item the user chooses, given the logits of γ, what is exposed, and one uniform number a slot."""

    name: ClassVar[str]

    def __call__(self, logit_BV: Floats, exposed_BV: Mask, uniform_B: NDArray[np.float64]) -> NDArray[np.int64]:
        """The picked item of each slot, `NOTHING` where there is none to pick from."""
        ...

    def probability(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        """P(C_sit = 1 | O_st), every item of each slot; a row of zeros where there is none to pick from."""
        ...


CHOICES: Registry[ChoiceModel] = Registry("choice model", package="unveil.simulation.choice", group="unveil.choices")
register = CHOICES.register


def users_do(name: str) -> str:
    """What such users do, in words: "choose the best of what they see"; its name where a model does not say."""
    return str(getattr(CHOICES[name], "about", f"choose by {name}"))


@register
class RationalAll:
    """The item of highest γ of all, exposed or not (the first of several): the paper's theory ignores exposure."""

    name: ClassVar[str] = "rational_all"
    about: ClassVar[str] = "choose the best of all there is, as if they saw everything"

    def __call__(self, logit_BV: Floats, exposed_BV: Mask, uniform_B: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(logit_BV.argmax(1))

    def probability(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        item_B = self(logit_BV, exposed_BV, np.empty(0))
        return np.asarray(np.arange(logit_BV.shape[1]) == item_B[:, None], dtype=np.float64)


@register
class RationalExposed(RationalAll):
    """The best of what is exposed: the paper's experiment."""

    name: ClassVar[str] = "rational_exposed"
    about: ClassVar[str] = "choose the best of what they see"

    def __call__(self, logit_BV: Floats, exposed_BV: Mask, uniform_B: NDArray[Any]) -> NDArray[np.int64]:
        item_B = np.where(exposed_BV, logit_BV, -np.inf).argmax(1)
        return np.where(exposed_BV[np.arange(len(item_B)), item_B], item_B, NOTHING)


@register
class CategoricalAll:
    """Item i with probability γ_i / Σ_j γ_j, exposed or not."""

    name: ClassVar[str] = "categorical_all"
    about: ClassVar[str] = "choose by chance among all there is, likelier what they like"

    def __call__(self, logit_BV: Floats, exposed_BV: Mask, uniform_B: NDArray[np.float64]) -> NDArray[np.int64]:
        """The item at which the running sum of γ passes the uniform number's share of the total."""
        mass_BV = np.cumsum(self._weight(logit_BV, exposed_BV), axis=1)
        total_B = mass_BV[:, -1]
        # Rounding must not carry the share up to the whole: beyond it there is no item.
        share_B = np.minimum(uniform_B * total_B, np.nextafter(total_B, 0))
        item_B = (mass_BV <= share_B[:, None]).sum(1)
        return np.where(total_B > 0, item_B, NOTHING)

    def probability(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        weight_BV = self._weight(logit_BV, exposed_BV)
        total_B1 = weight_BV.sum(1, keepdims=True)
        return np.asarray(np.divide(weight_BV, total_B1, out=np.zeros_like(weight_BV), where=total_B1 > 0))

    def _weight(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        return sigmoid(logit_BV).astype(np.float64)


@register
class CategoricalExposed(CategoricalAll):
    """The same among what is exposed."""

    name: ClassVar[str] = "categorical_exposed"
    about: ClassVar[str] = "choose by chance among what they see, likelier what they like"

    def _weight(self, logit_BV: Floats, exposed_BV: Mask) -> NDArray[np.float64]:
        return super()._weight(logit_BV, exposed_BV) * exposed_BV
