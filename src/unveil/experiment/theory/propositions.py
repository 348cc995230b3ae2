"""The paper's propositions, their assumptions and what training adds to them, on tiny worlds. All of it exact."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unveil.experiment.theory.closed_form import CLOSED_FORMS
from unveil.experiment.theory.enumerated import Enumerated
from unveil.experiment.theory.equations import expected_weight, relative_bias
from unveil.experiment.theory.finding import Finding, Kind
from unveil.experiment.theory.laid_open import Table
from unveil.experiment.theory.masking import Masking
from unveil.experiment.theory.outcomes import Relevance, ideal_weight
from unveil.experiment.theory.tiny import Tiny
from unveil.experiment.theory.variants import IDEAL, IPS, ITPS, NAIVE, NORMALISED, Variant, clipped, mistaken
from unveil.simulation.choice import choice_model
from unveil.simulation.world import World

ALL, EXPOSED = "rational_all", "rational_exposed"
CHANCE_ALL, CHANCE_EXPOSED = "categorical_all", "categorical_exposed"
P1, P2, P3 = "Proposition 1", "Proposition 2", "Proposition 3"
ASSUMED, TRAINED = "Assumptions", "In training"
CLIP, OFF_BY = 0.5, 1.0


@dataclass(frozen=True)
class Propositions:
    """Every claim, checked in the world that it speaks of."""

    tiny: Tiny

    def findings(self) -> list[Finding]:
        """All of them, in the order of the paper."""
        return [*self.first(), *self.second(), *self.third(), *self.assumptions(), *self.training()]

    @cached_property
    def moving(self) -> Enumerated:
        """The world in which θ changes with the step."""
        return self._enumerated(self.tiny.moving())

    def first(self) -> Iterator[Finding]:
        """Proposition 1."""
        shown = self._enumerated(self.tiny.all_shown())
        yield self._check(P1, "the naive loss is biased", "where θ is below 1", "biased", self.moving, NAIVE)
        yield self._check(P1, "it would be unbiased", "if all items were seen (θ = 1)", "unbiased", shown, NAIVE)

    def second(self) -> Iterator[Finding]:
        """Proposition 2, both ways, and how much of the condition is needed."""
        still, unchosen = self._enumerated(self.tiny.still()), self._enumerated(self.tiny.moving_unchosen())
        yield self._check(P2, "IPS is unbiased", "if θ is the same at all steps", "unbiased", still, IPS)
        yield self._check(P2, "IPS is biased", "if θ changes with the step", "biased", self.moving, IPS)
        where = "even if θ changes only for items that nobody chooses"
        yield self._check(P2, "IPS is biased", where, "biased", unchosen, IPS)

    def third(self) -> Iterator[Finding]:
        """Proposition 3, for each kind of user."""
        for choice, who in (
            (ALL, "for the user of the proof, who takes the best of all items"),
            (CHANCE_ALL, "for a user who picks by chance among all items (mean over C)"),
            (EXPOSED, "for the user of the experiment, who takes the best of the exposed"),
            (CHANCE_EXPOSED, "for a user who picks by chance among the exposed"),
        ):
            yield self._check(P3, "ITPS is unbiased", who, "unbiased", self.moving, ITPS, choice)
        who = "where every choice is an interaction (R = 1; the ideal without γ)"
        yield self._check(P3, "ITPS is unbiased", who, "unbiased", self.moving, ITPS, relevance="certain")

    def assumptions(self) -> Iterator[Finding]:
        """What the proof takes for granted."""
        related = self._enumerated(self.tiny.related())
        where = "even if items are shown the more to whom they please, as long as O and R are drawn apart"
        yield self._check(ASSUMED, "ITPS is unbiased", where, "unbiased", related, ITPS)
        where = "if one luck decides both O and R"
        yield self._check(ASSUMED, "ITPS is biased", where, "biased", self.moving, ITPS, relevance="same luck")
        where = f"by θ/θ̂, if told propensities that are off by {OFF_BY:g} logit"
        yield self._check(ASSUMED, "ITPS is biased", where, "biased", self.moving, mistaken(OFF_BY))

    def training(self) -> Iterator[Finding]:
        """What training does beside the equations."""
        laid, itps = self.moving.laid, ITPS.build(self.moving.laid.world)
        bites = (laid.theta_SV[np.arange(len(laid)), laid.favourite_S] < CLIP).any()
        kind: Kind = "biased" if bites else "unbiased"
        where = f"with θ clipped at {CLIP:g}, {'above some θ that matter' if bites else 'below every θ that matters'}"
        yield self._check(TRAINED, f"ITPS is {kind}", where, kind, self.moving, clipped(CLIP))
        where = "if divided by the sum of its weights, against the ideal divided by its own"
        yield self._check(TRAINED, "ITPS is biased", where, "biased", self.moving, NORMALISED)
        plain = self.moving.compare_masked(itps, ALL, Masking(0.2, 0.0, always_mask=False), by_slot=False)
        where = "if events are hidden by chance alone"
        yield Finding(TRAINED, "ITPS is unbiased", where, "unbiased", plain)
        trained = self.moving.compare_masked(itps, ALL, Masking(0.2, 0.1, always_mask=True), by_slot=True)
        where = "if at least one event of a row is hidden, against the ideal with its slots weighted alike"
        yield Finding(TRAINED, "ITPS is unbiased", where, "unbiased", trained)
        where = "as it is trained: on the slots of a log, and not on those without an event"
        yield self._check(TRAINED, "the ideal loss itself is biased", where, "biased", self.moving, IDEAL)

    def _check(
        self,
        topic: str,
        claim: str,
        setting: str,
        claimed: Kind,
        where: Enumerated,
        variant: Variant,
        choice: str = ALL,
        relevance: Relevance = "drawn",
    ) -> Finding:
        compared = where.compare(variant, choice, relevance)
        formula = bias_by_formula(where, variant, choice, relevance)
        return Finding(topic, claim, setting, claimed, compared, formula)

    def _enumerated(self, world: World) -> Enumerated:
        return Enumerated.of(world, self.tiny.seed)


def bias_by_formula(where: Enumerated, variant: Variant, choice: str, relevance: Relevance) -> float | None:
    """The bias from closed form and equations alone; None where one of them is missing."""
    if choice not in CLOSED_FORMS:
        return None
    p_SV = CLOSED_FORMS[choice](where.laid) * _chance_of_relevance(where, relevance)
    expected_SV = expected_weight(variant, where.laid, p_SV)
    ideal_SV = ideal_weight(where.laid, choice_model(choice), relevance)
    return None if expected_SV is None else relative_bias(expected_SV, ideal_SV, where.scores.loss())


def _chance_of_relevance(where: Enumerated, relevance: Relevance) -> Table:
    """P(R = 1 | O = 1): γ, one, or min(θ, γ)/θ."""
    theta_SV, gamma_SV = where.laid.theta_SV, where.laid.gamma_SV
    if relevance == "certain":
        return np.ones_like(gamma_SV)
    return gamma_SV if relevance == "drawn" else np.minimum(theta_SV, gamma_SV) / theta_SV
