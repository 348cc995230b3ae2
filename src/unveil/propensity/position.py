"""θ from the position at which an event was shown. Shapes: N rows of the log, M slots, K positions."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError, refuse_unless
from unveil.propensity.base import Kind, Source, of_events_alone, register
from unveil.propensity.examination.counts import Placings, pooled
from unveil.propensity.examination.fit import alike, examined
from unveil.propensity.impressions.training import training_impressions
from unveil.wording import quantity

#: p above this may be chance.
CHANCE = 0.05


@register
@dataclass
class Position:
    """θ of an event is e_k: how often its position is examined, relative to the one that is examined best.

    e is told by the clicks on items that were shown at several positions, in the training part (`examination.fit`).
    It says how likely something shown was to be looked at, and nothing of how likely it was to be shown at all.

    Assumes P(click) = e_k · r, and that an item's position says nothing of who looks at it.
    """

    log: Interactions
    deepest: int = 0  # positions from here on count as one; 0: each is its own
    add: float = 0.5  # clicks of an imagined item at every position, so that no e is 0

    name: ClassVar[str] = "position"
    kind: ClassVar[Kind] = "temporal"
    source: ClassVar[Source] = "positions"
    assumes: ClassVar[str] = (
        "that a click is a look at the position times the liking of the item, and that an item's position says "
        "nothing of who looks at it"
    )
    examination: dict[int, float] = field(init=False, repr=False)  # position → e, once fitted
    alike: float = field(init=False, repr=False)  # p of a test that all positions are examined alike

    def fit(self, train: Sequences) -> Self:
        """Learn e from the impressions of the training part."""
        placings = placings_of(self.log, training_impressions(self.log, train), self.deepest)
        wanted_K = np.isin(placings.position_K, self._positions(train.event_N))
        telling = placings.telling().linked(wanted_K)
        self.examination = dict(zip(telling.position_K.tolist(), examined(telling, self.add).tolist(), strict=True))
        self.alike = alike(telling)
        return self

    @property
    def doubt(self) -> str:
        """What is to be said where positions may differ by chance alone."""
        return "" if self.alike < CHANCE else f"Here positions may differ by chance alone (p = {self.alike:.2g})."

    def __call__(self, slots: Slots) -> Tensor:
        """θ of the slots' own events."""
        if slots.event_M is None:
            raise UnveilError("positions are known for events of the log only, and these slots are not")
        position_M, at_M = np.unique(self._positions(slots.event_M.cpu().numpy()), return_inverse=True)
        if strange := set(position_M.tolist()) - set(self.examination):
            raise UnveilError("nothing was shown at this position in the training part", found=min(strange))
        theta_M = np.array([self.examination[position] for position in position_M.tolist()], np.float32)[at_M]
        return torch.from_numpy(theta_M).to(slots.item_M.device)

    def of_all(self, slots: Slots) -> Tensor:
        """Not to be had."""
        raise of_events_alone("position")

    def _positions(self, row_N: NDArray[Any]) -> NDArray[Any]:
        assert self.log.position is not None
        return pooled(self.log.position[row_N], self.deepest)


def placings_of(log: Interactions, shown_N: NDArray[np.bool_], deepest: int) -> Placings:
    """The impressions among the rows `shown_N`, counted; a log that lacks what that takes is refused."""
    if log.position is None:
        raise UnveilError("this log has no positions", hint="Name the column with --position-col.")
    refuse_unless(deepest >= 0, "position.deepest", deepest, "0 or above")
    if log.clicked is None or log.clicked[shown_N].all():
        raise UnveilError(
            "this log has what users took and not what they left: what is placed where cannot be told from how "
            "often it is looked at",
            expected="a column that says of each impression whether it was clicked, with some that were not",
            hint="Name it with --clicked-col.",
        )
    bad_N = shown_N & (log.position < 0)
    if bad_N.any():
        rows, first = quantity(int(bad_N.sum()), "impression"), int(bad_N.argmax())
        raise UnveilError(
            "no position",
            where=f"{rows}, first row {first + 1} of the log",
            found=int(log.position[first]),
            expected="a whole number from 0",
        )
    return Placings.of(log.item[shown_N], log.position[shown_N], log.clicked[shown_N], deepest)
