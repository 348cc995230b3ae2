"""What a propensity model is, and where such models are found.

Shapes: M slots, V items.
"""

from typing import ClassVar, Literal, Protocol, Self

from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.registry import Registry

#: A static propensity says how likely an item is to be seen at all, a temporal one how likely at a step.
Kind = Literal["static", "temporal"]

#: What a model is made from, beside the training part it is fitted on; "log": the ids and times of the whole log;
#: "ratings": the log, for its ratings of the training events; "impressions": the log, for what it says was shown and
#: left; "positions": the log, for where its impressions stood.
Source = Literal["nothing", "logged", "truth", "log", "ratings", "impressions", "positions"]

#: Sources that tell of events of the log alone: such a model has θ of what was taken, and of no other item.
OF_EVENTS: frozenset[Source] = frozenset({"logged", "positions"})


class PropensityModel(Protocol):
    """θ: how likely a slot's item was to be seen there. Every value is above 0 and at most 1."""

    name: ClassVar[str]
    kind: ClassVar[Kind]
    source: ClassVar[Source]

    def fit(self, train: Sequences) -> Self:
        """Learn from the training part; nothing else is ever shown to a propensity model."""

    def __call__(self, slots: Slots) -> Tensor:
        """θ_M of the slots' own items."""

    def of_all(self, slots: Slots) -> Tensor:
        """θ_MV of every item at the slots."""


PROPENSITIES: Registry[PropensityModel] = Registry(
    "propensity", package="unveil.propensity", group="unveil.propensities"
)
register = PROPENSITIES.register


def of_events_alone(what: str) -> UnveilError:
    """The error of a model that knows θ of events of the log alone (`OF_EVENTS`) and is asked for every item."""
    return UnveilError(
        f"a log records the {what} of what was shown, not of every item",
        hint="Use an estimator that weights events (itps, itps-shrunk, doubly-robust), or another propensity.",
    )
