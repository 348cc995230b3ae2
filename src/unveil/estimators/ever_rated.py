"""What users would ever take, and how well those who took an item liked it: from a log with ratings."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unveil.data.interactions import Interactions
from unveil.data.ratings import every_rating
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError, refuse_unless
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.ever import Ever
from unveil.estimators.learning import BLOCK
from unveil.estimators.learnt.item_liking import item_liking
from unveil.estimators.losses.by_rows import ByRows


@register
@dataclass(frozen=True, eq=False)
class EverRated(Ever):
    """P(i | s) ∝ exp((F_si + liking · b_i) / temperature), in the place of exp(F_si / temperature) in ever.

    b_i is what i adds to the ratings of those who took it (`item_liking`), in standard deviations of the ratings. An
    item that was seldom shown is seldom in a set, but those who took it rate it like any other: b is free of θ as far
    as who takes an item does not depend on how well it is liked beyond what the taker's other ratings tell, and as it
    has enough ratings not to be held back by the shrinkage. A user who takes the best of what is shown breaks that in
    part, so b is no measure, only a help.

    An item that is taken n_i times, and would be m_i = Σ_s N_s P(i | s) times if the N_s takes of each user went by
    liking alone, was shown the more the larger n_i / m_i. `balance` times its log is added to the logits of the log's
    own items in training, and not in serving.
    """

    log: Interactions
    liking: float = 0.9
    balance: float = 0.5  # 0: what is shown too often is put down to liking

    name: ClassVar[str] = "ever-rated"
    needs: ClassVar[Need] = "ratings"
    b_V: Tensor = field(init=False, repr=False)
    shift_V: Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("liking", "balance"):
            value = getattr(self, name)
            refuse_unless(0 <= value < float("inf"), f"{self.name}.{name}", value, "0 or more")

    def fit(self, train: Sequences) -> Self:
        """Learn the sets, the items' liking, and what was taken more often than it is liked."""
        object.__setattr__(self, "b_V", torch.from_numpy(item_liking(train, self._ratings(train)).astype(np.float32)))
        super().fit(train)
        taken_V = torch.from_numpy(train.count_V.astype(np.float32))
        object.__setattr__(self, "shift_V", self.balance * torch.log((taken_V + 1) / (self._expected(train) + 1)))
        return self

    def __call__(self, slots: Slots) -> Signal:
        """As ever, the item of the log with the shift."""
        return replace(super().__call__(slots), offset_MV=ByRows(slots, self.offset) if self.balance else None)

    def scores(self, user_M: Tensor) -> Tensor:
        """F_MV + liking · b_V."""
        return super().scores(user_M) + self.liking * self.b_V.to(user_M.device)

    def offset(self, slots: Slots) -> Tensor:
        """The shift: the same row for every slot, as a view."""
        return self.shift_V.to(slots.item_M.device).expand(len(slots), -1)

    def _expected(self, train: Sequences) -> Tensor:
        """m_V = Σ_s N_s P(i | s), a block of users at a time."""
        taken_U = torch.from_numpy(train.length_U.astype(np.float32))
        expected_V = torch.zeros(train.n_items)
        for user_M in torch.split(torch.arange(len(taken_U)), BLOCK):
            expected_V += taken_U[user_M] @ self.liked(user_M)
        return expected_V

    def _ratings(self, train: Sequences) -> NDArray[np.float64]:
        rating_N = every_rating(self.log, train, f"the estimator {self.name!r}", "'ever', which needs none")
        if rating_N.min() == rating_N.max():
            problem = f"the estimator {self.name!r} needs ratings that differ, and all are alike"
            raise UnveilError(problem, found=float(rating_N.min()), hint="Use 'ever', which needs none.")
        return rating_N
