"""The expectation of a loss over every log of a tiny world, beside the ideal loss. Shapes: G logs, S slots, V items."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unveil.estimators.base import Estimator
from unveil.experiment.theory.laid_open import LaidOpen, Table
from unveil.experiment.theory.logs import all_logs, log_probability
from unveil.experiment.theory.masking import Masking
from unveil.experiment.theory.outcomes import Relevance, event_probability, ideal_weight
from unveil.experiment.theory.risks import risks, weighted_risk
from unveil.experiment.theory.scores import Scores
from unveil.experiment.theory.variants import Variant
from unveil.simulation.choice import NOTHING, ChoiceModel, choice_model
from unveil.simulation.world import World


@dataclass(frozen=True)
class Compared:
    """E[L] and L_ideal on one scale."""

    expected: float
    ideal: float

    @property
    def bias(self) -> float:
        """(E[L] − L_ideal) / L_ideal: free of the scale."""
        return self.expected / self.ideal - 1


@dataclass(frozen=True, eq=False)
class Enumerated:
    """A world, all its logs, and the scores they are judged by.

    Every risk is divided by the number of slots S = |S| · T, the same for all: the paper divides by |S| · |I| · T, and
    training by the expected number of events times the mean weight; all of these are constants, and the bias is
    relative. Only a self-normalised risk divides by its own weights: it is held against the ideal divided by its own.
    """

    laid: LaidOpen
    scores: Scores
    _kept: dict[Variant, tuple[Estimator, NDArray[np.float64]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, world: World, seed: int = 0) -> "Enumerated":
        """With scores that know some of the truth."""
        laid = LaidOpen(world)
        return cls(laid, Scores.informed(laid, seed))

    @cached_property
    def item_GS(self) -> NDArray[np.int64]:
        """Every log."""
        return all_logs(len(self.laid), self.laid.world.n_items)

    def compare(self, variant: Variant, choice: str, relevance: Relevance = "drawn") -> Compared:
        """E[L] over all logs, and L_ideal."""
        if variant not in self._kept:
            estimator = variant.build(self.laid.world)
            self._kept[variant] = estimator, self.risks(estimator)
        estimator, risk_G = self._kept[variant]
        return self.compare_with(risk_G, estimator, choice, relevance)

    def risks(self, estimator: Estimator) -> NDArray[np.float64]:
        """The risk of every log: the same however the user chooses."""
        return risks(estimator, self.item_GS, self.laid, self.scores)

    def compare_with(
        self, risk_G: NDArray[np.float64], estimator: Estimator, choice: str, relevance: Relevance = "drawn"
    ) -> Compared:
        """The same with risks that are at hand."""
        p_G = log_probability(self.item_GS, event_probability(self.laid, choice_model(choice), relevance))
        ideal_SV = ideal_weight(self.laid, choice_model(choice), relevance)
        if not estimator.self_normalised:
            return Compared(float(p_G @ risk_G), self.ideal(ideal_SV, len(self.laid)))
        # An empty log has no mean: the expectation is over those with events.
        some_G = (self.item_GS != NOTHING).any(1)
        return Compared(float(p_G @ risk_G / p_G[some_G].sum()), self.ideal(ideal_SV, float(ideal_SV.sum())))

    def ideal(self, weight_SV: Table, divisor: float) -> float:
        """The risk with these weights of all items at all slots."""
        return weighted_risk(weight_SV, self.scores, divisor)

    def compare_masked(self, estimator: Estimator, choice: str, masking: Masking, *, by_slot: bool) -> Compared:
        """E[L] over logs and over what is hidden, against ρ · L_ideal; or `by_slot`, with each slot of the ideal

        weighted by how likely its event is to be hidden, given that there is one.
        """
        p_SV1 = event_probability(self.laid, choice_model(choice))
        p_G = log_probability(self.item_GS, p_SV1)
        S = len(self.laid)
        mean = float(p_G @ risks(estimator, self.item_GS, self.laid, self.scores, masking))
        hidden_S = self._hidden(p_G, masking) if by_slot else np.full(S, masking.mask_probability)
        ideal_SV = ideal_weight(self.laid, choice_model(choice)) * hidden_S[:, None]
        return Compared(mean, self.ideal(ideal_SV, S))

    def _hidden(self, p_G: NDArray[np.float64], masking: Masking) -> NDArray[np.float64]:
        """P(hidden | an event) of each slot."""
        hidden_S, event_S = np.zeros(len(self.laid)), np.zeros(len(self.laid))
        for p, item_S in zip(p_G, self.item_GS, strict=True):
            slots = self.laid.slots(item_S)
            row_M = self.laid.rows(slots).numpy()
            hidden_S[row_M] += p * masking.chance(slots).numpy()
            event_S[row_M] += p
        return hidden_S / event_S


def choice_depends_on_exposure(laid: LaidOpen, choice: ChoiceModel) -> bool:
    """Whether P(C | O) differs between everything seen and one item hidden."""
    seen_SV = np.ones(laid.logit_SV.shape, bool)
    whole_SV = choice.probability(laid.logit_SV, seen_SV)
    for item in range(laid.world.n_items):
        part_SV = seen_SV.copy()
        part_SV[:, item] = False
        if not np.allclose(choice.probability(laid.logit_SV, part_SV), whole_SV):
            return True
    return False
