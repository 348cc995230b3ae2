"""What is asked and answered, as JSON. Raw ids in, raw ids out."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(max_length=1_000)]

_EXAMPLES: list[Any] = [
    {"history": ["50", "181", "172"], "k": 5},
    {"user": "196", "k": 10, "novelty": 0.3, "reasons": 3},
    {"history": ["50"], "exclude": ["181"], "where": ["genre=Drama", "year>=1990"], "model": "itps"},
]


class RecommendRequest(BaseModel):
    """Whom to recommend to, a history or a known user, and how."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": _EXAMPLES})

    history: list[Id] | None = Field(default=None, description="Item ids, oldest first. Unknown ones are passed over.")
    user: Id | None = Field(default=None, description="A user of the log that the model was trained on.")
    model: Id | None = Field(default=None, description="Name of a model; the first where not given.")
    k: int = Field(default=10, ge=1, description="Items in the list.")
    novelty: float = Field(
        default=0.0, ge=0, le=1, description="Novelty dial: 0, by likelihood; 1, by lift over popularity."
    )
    filter_seen: bool = Field(default=True, description="Leave out the items of the history.")
    candidates: list[Id] | None = Field(default=None, description="The only items that may be listed.")
    exclude: list[Id] = Field(default=[], description="Items that may not be listed.")
    where: list[Annotated[str, Field(max_length=1_000)]] = Field(
        default=[], max_length=20, description="Conditions on the attributes of items; all have to hold."
    )
    reasons: int = Field(default=0, ge=0, le=20, description="Items of the history to name as reasons of each item.")


class BatchRequest(BaseModel):
    """Several questions at once; they may go to different models."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"questions": [{"history": ["50"]}, {"user": "196"}]}]}
    )

    questions: list[RecommendRequest] = Field(min_length=1)


class Reason(BaseModel):
    """An item of the history, and what leaving it out does: log p(item | history) − log p(item | without it)."""

    item_id: str
    title: str
    effect: float


class RecommendedItem(BaseModel):
    """An item of a list."""

    item_id: str
    title: str
    rank: int
    score: float
    popularity: float = Field(description="Share of all interactions: a proxy of how often it was shown.")
    propensity: float = Field(description="How likely the item is to be shown, by the source; at a user's next step.")
    propensity_source: str = Field(
        description="The propensity that the model was trained with; popularity where it knows none of the item."
    )
    reasons: list[Reason] = []


class RecommendResponse(BaseModel):
    """A list, and what could not be taken into account."""

    model: str
    version: str = Field(description="Which weights answered: the beginning of their hash.")
    items: list[RecommendedItem]
    unknown_items: list[str] = Field(default=[], description="Ids of the history that the model does not know.")
    unknown_choices: list[str] = Field(
        default=[], description="Ids of the candidates and the exclusions that the model does not know."
    )
    fallback: Literal["popularity"] | None = Field(
        default=None, description="What answered in place of the model, where nothing of the history is known."
    )


class BatchResponse(BaseModel):
    """One answer for each question, in order."""

    answers: list[RecommendResponse]


class ItemMatch(BaseModel):
    """An item that was searched for."""

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
    max_k: int = Field(description="Items of a list, at most.")
    propensity: str = Field(description="Source of the items' propensities, or popularity where there is none.")
    dial: list[dict[str, float]] = Field(
        default=[], description="What the novelty dial was measured to give and to take."
    )


class ErrorResponse(BaseModel):
    """What is wrong, in one sentence."""

    error: str


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """How the answers of a path to bad requests are described in OpenAPI."""
    meaning = {
        400: "not JSON",
        401: "a token is needed",
        403: "asked under another name, or by a page from elsewhere",
        408: "the request did not arrive in time",
        409: "a new model was refused; the old one stays",
        413: "the request is too large",
        422: "the request cannot be answered as it is",
        429: "too many requests at once",
    }
    return {code: {"model": ErrorResponse, "description": meaning[code]} for code in codes}
