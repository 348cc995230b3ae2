"""How users respond to a list: response models, found by name. Shapes: U users, K places, V items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from unveil.data.indexing import Index
from unveil.errors import Positive, UnveilError, UpToOne, check_range, check_ranges
from unveil.evaluation.metrics import NOBODY
from unveil.registry import Registry
from unveil.simulation.choice import CHOICES
from unveil.simulation.feedback.figures import Lists

Probabilities = NDArray[np.float64]

#: What a response model looks at beside the lists.
Need = Literal["nothing", "world"]


@dataclass(frozen=True, eq=False)
class Offer:
    """What every user is shown in one round, and what may sway them."""

    lists: Lists
    count_V: NDArray[Any]  # how often each item was chosen so far
    gamma_UK: NDArray[Any] | None = None  # the true relevance of the listed items, in a world

    @property
    def relevance_UK(self) -> NDArray[np.float64]:
        """γ of the listed items, 0 in empty places."""
        if self.gamma_UK is None:
            raise UnveilError("this response needs a world", hint="Name the world the log was drawn from (--world).")
        return np.where(self.lists.filled_UK, self.gamma_UK, 0.0)

    @property
    def logit_UK(self) -> NDArray[np.float64]:
        gamma_UK = np.clip(self.relevance_UK, 1e-12, 1 - 1e-12)
        return np.asarray(np.log(gamma_UK) - np.log1p(-gamma_UK))


class Response(Protocol):
    """p_UK: how likely each user is to choose the item in each place. What is missing to 1 is to choose nothing."""

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


def chosen(offer: Offer, response: Response, uniform_U: NDArray[np.float64]) -> Index:
    """The item at which the running sum of p passes the user's number (shared by compared models), else `NOBODY`."""
    mass_UK = np.cumsum(response(offer), axis=1)
    total_U1 = mass_UK[:, -1:]
    # A user who surely chooses something must not lose it by rounding.
    mass_UK = np.divide(mass_UK, total_U1, out=mass_UK, where=np.abs(total_U1 - 1) < 1e-9)
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


def logit_shares(utility_UK: NDArray[np.float64], filled_UK: NDArray[np.bool_]) -> Probabilities:
    """exp(u_k) / Σ_j exp(u_j) over the filled places."""
    open_UK = np.where(filled_UK, utility_UK, -np.inf)
    highest_U1 = open_UK.max(1, keepdims=True)
    return shares(np.exp(open_UK - np.where(np.isfinite(highest_U1), highest_U1, 0.0)), filled_UK)


class BuiltIn:
    """What the response models of this package share; one of your own need not."""

    needs: ClassVar[Need] = "nothing"

    def __post_init__(self) -> None:
        check_ranges(self, "response")


@register
@dataclass(frozen=True)
class Uniform(BuiltIn):
    """p_k = 1 / (places filled): the feedback loop of the paper (section 5.2, RQ5)."""

    name: ClassVar[str] = "uniform"

    def __call__(self, offer: Offer) -> Probabilities:
        return shares(np.ones(offer.lists.top_UK.shape), offer.lists.filled_UK)


@register
@dataclass(frozen=True)
class Logarithmic(BuiltIn):
    """p_k ∝ 1 / log2(1 + k), k = 1 at the top: attention that fades as the discount of NDCG does."""

    name: ClassVar[str] = "position"

    def __call__(self, offer: Offer) -> Probabilities:
        place_K = np.arange(1, offer.lists.top_UK.shape[1] + 1)
        return shares(1 / np.log2(1 + place_K), offer.lists.filled_UK)


@register
@dataclass(frozen=True)
class Geometric(BuiltIn):
    """p_k ∝ patience^(k − 1): at each place the user goes on to the next with probability `patience`."""

    patience: UpToOne = 0.7

    name: ClassVar[str] = "geometric"

    def __call__(self, offer: Offer) -> Probabilities:
        place_K = np.arange(offer.lists.top_UK.shape[1])
        return shares(self.patience**place_K, offer.lists.filled_UK)


@register
@dataclass(frozen=True)
class Popular(BuiltIn):
    """p_k ∝ (count + 1)^strength, counted in the log so far: 0 is uniform, 1 follows the crowd, more exaggerates it."""

    strength: float = 1.0

    name: ClassVar[str] = "popular"

    def __post_init__(self) -> None:
        check_range(bool(np.isfinite(self.strength)), "response.strength", self.strength, "a number")

    def __call__(self, offer: Offer) -> Probabilities:
        return logit_shares(self.strength * np.log1p(offer.count_V)[offer.lists.top_UK], offer.lists.filled_UK)


@dataclass(frozen=True)
class MultinomialLogit(BuiltIn):
    """p_k = exp(u_k / temperature) / Σ_j exp(u_j / temperature)."""

    temperature: Positive = 1.0


@register
@dataclass(frozen=True)
class ByScore(MultinomialLogit):
    """Utilities are the model's own scores: the user who agrees with the recommender, whichever it is."""

    name: ClassVar[str] = "logit"

    def __call__(self, offer: Offer) -> Probabilities:
        return logit_shares(offer.lists.score_UK.astype(np.float64) / self.temperature, offer.lists.filled_UK)


@register
@dataclass(frozen=True)
class ByRelevance(MultinomialLogit):
    """Utilities are the logits of γ, and of choosing nothing 0: at temperature 1 a lone item is chosen with γ."""

    name: ClassVar[str] = "logit-relevance"
    needs: ClassVar[Need] = "world"

    def __call__(self, offer: Offer) -> Probabilities:
        with_nothing = [(0, 0), (0, 1)]
        utility_UK1 = np.pad(offer.logit_UK, with_nothing)
        filled_UK1 = np.pad(offer.lists.filled_UK, with_nothing, constant_values=True)
        return logit_shares(utility_UK1 / self.temperature, filled_UK1)[:, :-1]


@register
@dataclass(frozen=True)
class Relevant(BuiltIn):
    """p_k = P(k is chosen from the list) · γ_k, as in the worlds' logs: Y = C · O · R with the list exposed."""

    choice: str = "rational_exposed"

    name: ClassVar[str] = "relevant"
    needs: ClassVar[Need] = "world"

    def __post_init__(self) -> None:
        CHOICES[self.choice]()

    def __call__(self, offer: Offer) -> Probabilities:
        logit_UK = offer.logit_UK.astype(np.float32)
        chosen_UK = CHOICES[self.choice]().probability(logit_UK, offer.lists.filled_UK)
        return np.where(offer.lists.filled_UK, chosen_UK * offer.relevance_UK, 0.0)
