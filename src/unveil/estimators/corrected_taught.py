"""Exposure-corrected softmax, taught by what the same correction finds in each user's whole history."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.learnt.steady_tastes import SteadyTastes
from unveil.estimators.losses.by_rows import ByRows
from unveil.estimators.offset import PropensityOffset


@register
@dataclass(frozen=True, eq=False)
class CorrectedTaught(PropensityOffset):
    """−(1 − trust) log softmax(f + log θ)[i], as in corrected, − trust Σ_j P(j | s) log softmax(f)[j].

    P(j | s) = softmax(F_s)[j] is what s likes by F_sj = b_j + p_s · q_j, which is fitted first, to all training events
    of all users, by the loss of corrected itself (`SteadyTastes`). One take says little of a user who sees little at a
    time; all of a user's takes together say more, and so the network is told at every slot what they say.

    Consistent where corrected is and tastes keep still: P ∝ θ_sit · exp F_si. Both parts are least at f = F then.
    """

    trust: float = 0.5  # 0: corrected
    width: int = 16
    penalty: float = 1.0
    batches: int = 5000
    seed: int = 0

    name: ClassVar[str] = "corrected-taught"
    needs: ClassVar[Need] = "temporal"
    tastes: SteadyTastes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(0 <= self.trust <= 1, f"{self.name}.trust", self.trust, "between 0 and 1")
        refuse_unless(0 <= self.penalty < float("inf"), f"{self.name}.penalty", self.penalty, "0 or more")
        for name in ("width", "batches"):
            refuse_unless(getattr(self, name) >= 1, f"{self.name}.{name}", getattr(self, name), "at least 1")

    def fit(self, train: Sequences) -> Self:
        """Learn what each user likes."""
        tastes = SteadyTastes.of(
            train, super().__call__, width=self.width, penalty=self.penalty, batches=self.batches, seed=self.seed
        )
        object.__setattr__(self, "tastes", tastes)
        return self

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log with its offset and, as far as they are trusted, the tastes of the slot's user."""
        rest_M = torch.full((len(slots),), 1 - self.trust, device=slots.item_M.device)
        return Signal(slots.item_M, rest_M, ByRows(slots, self.offset), imputed_MV=ByRows(slots, self.imputed))

    def imputed(self, slots: Slots) -> Tensor:
        """trust · P(j | s)_MV."""
        return torch.softmax(self.tastes(slots.user_M), 1).mul_(self.trust)
