"""Requests and responses as JSON. Raw ids in, raw ids out."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(max_length=1_000)]

_EXAMPLES: list[Any] = [
    {"history": ["50", "181", "172"], "k": 5},
    {"user": "196", "k": 10, "novelty": 0.3, "reasons": 3},
    {"history": ["50"], "exclude": ["181"], "where": ["genre=Drama", "year>=1990"], "model": "itps"},
]


class RecommendRequest(BaseModel):
    """A history or a known user to recommend to, and the conditions."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": _EXAMPLES})

    history: list[Id] | None = Field(default=None, description="Item ids, oldest first. Unknown ones are skipped.")
    user: Id | None = Field(default=None, description="A user of the log that the model was trained on.")
    model: Id | None = Field(default=None, description="Name of a model; the first by default.")
    k: int = Field(default=10, ge=1, description="Number of recommended items.")
    novelty: float = Field(
        default=0.0,
        ge=-4,
        le=1,
        description="0: by likelihood … 1: by lift over popularity; below 0, popularity is added.",
    )
    filter_seen: bool = Field(default=True, description="Leave out the items of the history.")
    candidates: list[Id] | None = Field(default=None, description="The only items that may be recommended.")
    exclude: list[Id] = Field(default=[], description="Items that may not be recommended.")
    where: list[Id] = Field(default=[], max_length=20, description="Conditions on item attributes; all have to hold.")
    reasons: int = Field(default=0, ge=0, le=20, description="Number of history items named as reasons of each item.")


class BatchRequest(BaseModel):
    """Several requests at once; they may go to different models."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"questions": [{"history": ["50"]}, {"user": "196"}]}]}
    )

    questions: list[RecommendRequest] = Field(min_length=1)


class Reason(BaseModel):
    """An item of the history and its effect: log p(item | history) − log p(item | history without it)."""

    item_id: str
    title: str
    effect: float


class RecommendedItem(BaseModel):
    """A recommended item."""

    item_id: str
    title: str
    rank: int
    score: float
    popularity: float = Field(description="Share of all interactions: a proxy of exposure.")
    propensity: float = Field(description="Exposure probability of the item at the user's next step, by the source.")
    propensity_source: str = Field(description="The propensity of training; popularity where it has none for the item.")
    reasons: list[Reason] = []


class RecommendResponse(BaseModel):
    """Recommended items, and ids that could not be used."""

    model: str
    version: str = Field(description="Which weights answered: the beginning of their hash.")
    items: list[RecommendedItem]
    unknown_items: list[str] = Field(default=[], description="Unknown ids of the history.")
    unknown_choices: list[str] = Field(default=[], description="Unknown ids of candidates and exclusions.")
    fallback: Literal["popularity"] | None = Field(
        default=None, description="What answered in place of the model, if no item of the history is known."
    )


class BatchResponse(BaseModel):
    """One response for each request, in order."""

    answers: list[RecommendResponse]


class ItemMatch(BaseModel):
    """An item found by a search."""

    item_id: str
    title: str
    popularity: float


class ModelInfo(BaseModel):
    """A model that is being served."""

    name: str
    version: str
    network: str
    items: int
    users: int
    length: int = Field(description="Events of a history that are read, plus one.")
    max_k: int = Field(description="Largest number of recommended items.")
    propensity: str = Field(description="Source of the items' propensities, or popularity where there is none.")
    dial: list[dict[str, float]] = Field(default=[], description="Measured accuracy and novelty by setting of novelty.")


class ErrorResponse(BaseModel):
    """What is wrong, in one sentence."""

    error: str


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """How the responses of a path to bad requests are described in OpenAPI."""
    meaning = {
        400: "not JSON",
        401: "a token is needed",
        403: "another host name, or a page of another origin",
        408: "the request did not arrive in time",
        409: "a new model was refused; the old one stays",
        413: "the request is too large",
        422: "the request cannot be answered as it is",
        429: "too many requests at once",
    }
    return {code: {"model": ErrorResponse, "description": meaning[code]} for code in codes}
