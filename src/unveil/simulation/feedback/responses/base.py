"""What a response model is, and where response models are found. Shapes: U users, K places, V items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from unveil.data.vocabulary import Index
from unveil.errors import UnveilError
from unveil.evaluation.metrics import NOBODY
from unveil.registry import Registry
from unveil.simulation.feedback.lists import Lists

Probabilities = NDArray[np.float64]

_ROUNDING = 1e-9

#: What a response model looks at beside the lists.
Need = Literal["nothing", "world"]


@dataclass(frozen=True, eq=False)
class Offer:
    """What every user is shown in one round, and what may sway them."""

    lists: Lists
    count_V: NDArray[Any]  # how often each item was taken so far
    gamma_UK: NDArray[Any] | None = None  # the true relevance of the listed items, in a world

    @property
    def relevance_UK(self) -> NDArray[np.float64]:
        """γ of the listed items, 0 in empty places."""
        if self.gamma_UK is None:
            raise UnveilError("this response needs a world", hint="Name the world the log was drawn from (--world).")
        return np.where(self.lists.filled_UK, self.gamma_UK, 0.0)


class Response(Protocol):
    """p_UK: how likely each user is to take the item in each place. What is missing to 1 is to take nothing."""

    name: ClassVar[str]
    needs: ClassVar[Need]

    def __call__(self, offer: Offer) -> Probabilities:
        """A row a user; 0 in empty places, at most 1 in all."""
        ...


RESPONSES: Registry[Response] = Registry(
    "response", package="unveil.simulation.feedback.responses", group="unveil.responses"
)
register = RESPONSES.register


def response_model(choice: Mapping[str, Any]) -> Response:
    """The response model of `name`, with its options beside the name."""
    options = dict(choice)
    return RESPONSES.build(str(options.pop("name")), options)


def taken(offer: Offer, response: Response, uniform_U: NDArray[np.float64]) -> Index:
    """What each user takes: the item at which the running sum of p passes the user's number, else `NOBODY`.

    The number is the user's luck in a round. Models that are compared share it: then a difference between them is
    owed to their lists.
    """
    mass_UK = np.cumsum(response(offer), axis=1)
    total_U1 = mass_UK[:, -1:]
    # Rounding must not let a user go who takes something for sure.
    mass_UK = np.divide(mass_UK, total_U1, out=mass_UK, where=np.abs(total_U1 - 1) < _ROUNDING)
    place_U = (mass_UK <= uniform_U[:, None]).sum(1)
    there_U = place_U < mass_UK.shape[1]
    at_U = np.where(there_U, place_U, 0)
    item_U = offer.lists.top_UK[np.arange(len(at_U)), at_U]
    return np.where(there_U, item_U, NOBODY).astype(np.int32)


def shares(weight_UK: NDArray[Any], filled_UK: NDArray[np.bool_]) -> Probabilities:
    """Weights of the filled places as shares of each user's sum; zeros for a user with an empty list."""
    weight_UK = np.where(filled_UK, weight_UK, 0.0)
    total_U1 = weight_UK.sum(1, keepdims=True)
    return np.asarray(np.divide(weight_UK, total_U1, out=np.zeros_like(weight_UK), where=total_U1 > 0))
