"""What users would ever take, and how well those who took an item liked it: from a log with ratings."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Need, register
from unveil.estimators.ever import Ever
from unveil.estimators.item_liking import item_liking


@register
@dataclass(frozen=True, eq=False)
class EverRated(Ever):
    """P(i | s) ∝ exp((F_si + liking · b_i) / temperature), in the place of exp(F_si / temperature) in ever.

    b_i is what i adds to the ratings of those who took it (`item_liking`), in standard deviations of the ratings. An
    item that was seldom shown is seldom in a set, but those who took it rate it like any other: b is free of θ as far
    as who takes an item does not depend on how well it is liked beyond what the taker's other ratings tell. A user
    who takes the best of what is shown breaks that in part, so b is no measure, only a help.
    """

    log: Interactions
    liking: float = 0.9

    name: ClassVar[str] = "ever-rated"
    needs: ClassVar[Need] = "ratings"
    b_V: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.liking < float("inf"):
            raise UnveilError("out of range", where=f"{self.name}.liking", found=self.liking, expected="0 or more")

    def fit(self, train: Sequences) -> Self:
        """Learn the sets and the items' liking."""
        object.__setattr__(self, "b_V", torch.from_numpy(item_liking(train, self._ratings(train)).astype(np.float32)))
        return super().fit(train)

    def scores(self, slots: Slots) -> Tensor:
        """F_MV + liking · b_V."""
        return super().scores(slots) + self.liking * self.b_V.to(slots.item_M.device)

    def _ratings(self, train: Sequences) -> NDArray[np.float64]:
        rating_N = np.full(1, np.nan) if self.log.rating is None else self.log.rating[train.event_N]
        if not np.isfinite(rating_N).all():
            raise UnveilError(f"the estimator {self.name!r} needs a rating of every event, and some are empty")
        return np.asarray(rating_N, np.float64)
