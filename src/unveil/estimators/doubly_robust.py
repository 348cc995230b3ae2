"""Imputed relevance plus a weighted residual: the doubly robust form, as far as a log of events can carry it."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.errors import refuse_unless
from unveil.estimators.base import Need, Signal, register
from unveil.estimators.inverse import InversePropensity
from unveil.estimators.learnt.imputation import Transitions
from unveil.estimators.losses.by_rows import ByRows


@register
@dataclass(frozen=True, eq=False)
class DoublyRobust(InversePropensity):
    """a_i = m_i + O_i (Y_i − m_i) / θ_sit in the place of Y_i / θ_sit (eq. of L_ITPS), m the imputed relevance.

    With O of every item at every slot, its mean is right if θ is or m is. A log of events tells O of the taken item
    alone, and of slots without an event nothing: there a_i = m_i, and at the taken item (1 − m_i) / θ̂ more, which on
    average over logs is P(event) m_i + (θ/θ̂) μ_i (1 − m_i) for a user who takes i with probability μ_i if it is seen,
    whatever else is. Where m is right and certain (0 or 1) that is ∝ m, the right minimum whatever θ̂ is; where θ̂ is
    right it is off by m_i (P(event) − μ_i), which `trust` keeps small. No estimator has both halves on such a log: only
    θ μ can be seen in it, and another θ with another μ gives the same log.

    m is `trust` times the chance that `Transitions` gives: a frozen model, so that a network cannot confirm itself.
    """

    trust: float = 0.2  # the sum of m over the items; 0: ITPS
    backing: float = 10.0  # of the imputation: events' worth of the items' shares behind each item

    name: ClassVar[str] = "doubly-robust"
    needs: ClassVar[Need] = "temporal"
    imputation: Transitions = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_unless(0 <= self.trust <= 1, f"{self.name}.trust", self.trust, "between 0 and 1")
        refuse_unless(0 < self.backing < float("inf"), f"{self.name}.backing", self.backing, "above 0")

    def fit(self, train: Sequences) -> Self:
        """Count what follows what."""
        object.__setattr__(self, "imputation", Transitions.of(train, self.backing))
        return self

    def __call__(self, slots: Slots) -> Signal:
        """The item of the log by what the imputation left of it, weighted; and what is imputed to every item."""
        m_M, w_M = self.imputation(slots).mul_(self.trust), self.inverse(slots)
        residual_M = doubly_robust(m_M, torch.ones_like(m_M), torch.ones_like(m_M), 1 / w_M) - m_M
        return Signal(slots.item_M, residual_M, imputed_MV=ByRows(slots, self.imputed))

    def imputed(self, slots: Slots) -> Tensor:
        """m of every item at these slots."""
        return self.imputation.of_all(slots).mul_(self.trust)


def doubly_robust(imputed: Tensor, taken: Tensor, shown: Tensor, theta: Tensor) -> Tensor:
    """a = m + O (Y − m) / θ, item by item."""
    return imputed + shown * (taken - imputed) / theta
