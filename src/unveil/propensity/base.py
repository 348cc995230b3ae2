"""What a propensity model is, and the registry of such models. Shapes: M slots, V items."""

from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.registry import Registry

#: A static propensity says how likely an item is to be exposed at all, a temporal one how likely at a step.
Kind = Literal["static", "temporal"]

#: What a model is built from, beside the training part it is fitted on; "log": the ids and times of the whole log;
#: "ratings", "impressions", "positions": the log, for what it says of these.
Source = Literal["nothing", "logged", "truth", "log", "ratings", "impressions", "positions"]

#: Sources that know θ of the log's own events alone, and of no other item.
OF_EVENTS: frozenset[Source] = frozenset({"logged", "positions"})


class PropensityModel(Protocol):
    """θ: the probability that a slot's item was exposed there. Every value is above 0 and at most 1."""

    name: ClassVar[str]
    kind: ClassVar[Kind]
    source: ClassVar[Source]

    def fit(self, train: Sequences) -> Self:
        """Learn from the training part, and from nothing else."""

    def __call__(self, slots: Slots) -> Tensor:
        """θ_M of the slots' own items."""

    def of_all(self, slots: Slots) -> Tensor:
        """θ_MV of every item at the slots."""


PROPENSITIES = Registry[PropensityModel]("propensity", package="unveil.propensity", group="unveil.propensities")
register = PROPENSITIES.register
F = TypeVar("F")


def both_kinds(family: str, of: type[F]) -> tuple[type[F], type[F]]:
    """Register a class as `family`-static, the same at all steps, and `family`-temporal, by the step or its block."""
    made: list[type[F]] = []
    for kind in get_args(Kind):
        named = {"name": f"{family}-{kind}", "kind": kind, "__module__": of.__module__, "__doc__": of.__doc__}
        made.append(register(type(f"{of.__name__}{kind.title()}", (of,), named)))
    return made[0], made[1]


class OfEvents:
    """A model that knows θ of the log's events alone (`OF_EVENTS`), by what the log `records` of each."""

    records: ClassVar[str]

    def rows(self, slots: Slots) -> NDArray[np.int64]:
        if slots.event_M is None:
            raise UnveilError(f"the {self.records} is known for events of the log only, and these slots are not")
        return np.asarray(slots.event_M.cpu().numpy())

    def of_all(self, slots: Slots) -> Tensor:
        problem = f"a log records the {self.records} of what was shown, not of every item"
        hint = "Use an estimator that weights events (itps, itps-shrunk, doubly-robust), or another propensity."
        raise UnveilError(problem, hint=hint)


def indices(slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """user_M, item_M, step_M as arrays."""
    return slots.user_M.cpu().numpy(), slots.item_M.cpu().numpy(), slots.step_M.cpu().numpy()


def as_theta(theta: NDArray[Any], slots: Slots) -> Tensor:
    """On the slots' device; what single precision rounds to 0 becomes its smallest number: θ stays above 0."""
    return torch.from_numpy(theta).to(slots.item_M.device, torch.float32).clamp_min(torch.finfo(torch.float32).tiny)
