"""Whether a user ever takes an item, and not how often: all from the log."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.learnt.taken_sets import TakenSets
from unveil.estimators.losses.by_rows import ByRows


@register
@dataclass(frozen=True, eq=False, kw_only=True)
class Ever:
    """P(i | s) ∝ exp(F_si / temperature), F_si that s ever takes i, is to be predicted beside the item of the log.

    How often s took i tells as much of exposure as of liking; whether s ever did, less of exposure: 1 − (1 − θ)^N is
    nearer to 1 for all than θ is. And that s never did says little where few items are shown. F, learnt from the sets
    of what users took (`TakenSets`), says both. The item of the log (eq. of L_Cloze) counts by 1 − `trust`: it alone
    tells of the step.

    Where everybody sees at some step all that they would take the sets are free of θ: what a user would take stands
    before what they would not. Within a set F is alike, and the order is that of the log's own items, which is not free
    of θ; nor is that of a model that cannot tell users apart. Elsewhere θ is in the sets too, and the more the rarer
    exposure is.
    """

    unseen: float = 0.03  # the weight of an item that s never took, against 1 for one that s took
    width: int = 16
    penalty: float = 1.0
    temperature: float = 0.1
    trust: float = 0.5  # 0: the item of the log alone
    seed: int = 0

    name: ClassVar[str] = "ever"
    needs: ClassVar[Need] = "nothing"
    self_normalised: ClassVar[bool] = False
    sets: TakenSets = field(init=False, repr=False)

    def __post_init__(self) -> None:
        refuse_unless(0 < self.unseen <= 1, f"{self.name}.unseen", self.unseen, "above 0, at most 1")
        refuse_unless(self.width >= 1, f"{self.name}.width", self.width, "at least 1")
        refuse_unless(0 <= self.trust <= 1, f"{self.name}.trust", self.trust, "between 0 and 1")
        for name in ("penalty", "temperature"):
            value = getattr(self, name)
            refuse_unless(0 < value < float("inf"), f"{self.name}.{name}", value, "above 0")

    def fit(self, train: Sequences) -> Self:
        """Learn the sets."""
        sets = TakenSets.of(train, unseen=self.unseen, width=self.width, penalty=self.penalty, seed=self.seed)
        object.__setattr__(self, "sets", sets)
        return self

    def __call__(self, slots: Slots) -> Signal:
        """What the slot's user would ever take and, as far as that is not trusted, the item of the log."""
        rest_M = torch.full((len(slots),), 1 - self.trust, device=slots.item_M.device)
        return Signal(slots.item_M, rest_M, imputed_MV=ByRows(slots, self.imputed))

    def imputed(self, slots: Slots) -> Tensor:
        """What the slots' users would ever take, as far as it is trusted."""
        return self.liked(slots.user_M).mul_(self.trust)

    def liked(self, user_M: Tensor) -> Tensor:
        """P(i | s)_MV of these users."""
        return torch.softmax(self.scores(user_M) / self.temperature, 1)

    def scores(self, user_M: Tensor) -> Tensor:
        """F_MV of these users."""
        return self.sets(user_M)
