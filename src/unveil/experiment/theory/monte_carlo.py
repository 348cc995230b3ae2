"""The bias of each loss in a world too large to enumerate: logs drawn as always, losses as trained, an interval.

Shapes: S slots, V items, R draws, A variants of estimators.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unveil.estimators.base import Estimator
from unveil.evaluation.stats import paired
from unveil.experiment.theory.closed_form import CLOSED_FORMS
from unveil.experiment.theory.equations import expected_weight, relative_bias
from unveil.experiment.theory.laid_open import LaidOpen, Table, slots_of
from unveil.experiment.theory.outcomes import ideal_weight
from unveil.experiment.theory.risks import risk
from unveil.experiment.theory.scores import Scores
from unveil.experiment.theory.variants import IDEAL, IPS, ITPS, NAIVE, NORMALISED, Variant, clipped
from unveil.simulation.choice import choice_model
from unveil.simulation.generate import draw

#: The clip is that of the paper's code.
VARIANTS = (NAIVE, IPS, ITPS, clipped(0.2), NORMALISED, IDEAL)
#: All intervals of a run together are to be right with this probability.
LEVEL = 0.95

Told = Callable[[], None]  # called after each draw


@dataclass(frozen=True)
class Estimated:
    """The relative bias of one loss under one choice model, from draws and, where there is one, by formula."""

    choice: str
    estimator: str
    formula: float | None
    mean: float
    low: float
    high: float
    spread: float  # standard deviation of the loss of one log, relative to the ideal
    draws: int

    @property
    def agrees(self) -> bool | None:
        """Whether the interval holds what the formula says."""
        return None if self.formula is None else self.low <= self.formula <= self.high

    @property
    def found(self) -> str:
        """What the interval alone tells."""
        return "biased" if self.low > 0 or self.high < 0 else "none seen"


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """A world, the scores its logs are judged by, and how many logs are drawn for each choice model."""

    laid: LaidOpen
    scores: Scores
    draws: int
    seed: int

    def run(self, choices: Sequence[str], told: Told | None = None) -> list[Estimated]:
        """A row for each choice model and estimator; draws are shared by all estimators, and luck by all choices."""
        level = 1 - (1 - LEVEL) / (len(choices) * len(VARIANTS))
        return [row for choice in choices for row in self._rows(choice, level, told)]

    def _rows(self, choice: str, level: float, told: Told | None) -> list[Estimated]:
        ideal_SV = ideal_weight(self.laid, choice_model(choice))
        risk_RA = self.risks(choice, [variant.build(self.laid.world) for variant in VARIANTS], told)
        formulas = self.formulas(choice, ideal_SV)
        return [
            _row(choice, variant, risk_R / self._ideal(variant, ideal_SV) - 1, formula, level)
            for variant, risk_R, formula in zip(VARIANTS, risk_RA.T, formulas, strict=True)
        ]

    def risks(self, choice: str, estimators: Sequence[Estimator], told: Told | None = None) -> NDArray[np.float64]:
        """risk_RA: every estimator's risk of every log."""
        risk_RA = np.empty((self.draws, len(estimators)))
        for nth in range(self.draws):
            events = draw(self.laid.world, np.random.default_rng([self.seed, nth]), choice_model(choice))
            slots = slots_of(events.user_N, events.item_N, events.step_N)
            risk_RA[nth] = [risk(estimator, slots, self.laid, self.scores) for estimator in estimators]
            if told is not None:
                told()
        return risk_RA

    def _ideal(self, variant: Variant, ideal_SV: Table) -> float:
        """L_ideal on the scale of the variant's risk."""
        divisor = float(ideal_SV.sum()) if variant is NORMALISED else len(self.laid)
        return float((ideal_SV * self.scores.loss()).sum()) / divisor

    def formulas(self, choice: str, ideal_SV: Table) -> list[float | None]:
        """The bias of each variant by closed form, where there is one."""
        if choice not in CLOSED_FORMS:
            return [None] * len(VARIANTS)
        p_SV, loss_SV = CLOSED_FORMS[choice](self.laid) * self.laid.gamma_SV, self.scores.loss()
        expected = [expected_weight(variant, self.laid, p_SV) for variant in VARIANTS]
        return [None if E_SV is None else relative_bias(E_SV, ideal_SV, loss_SV) for E_SV in expected]


def _row(choice: str, variant: Variant, bias_R: NDArray[np.float64], formula: float | None, level: float) -> Estimated:
    found, spread = paired(bias_R, np.zeros_like(bias_R), level=level), float(bias_R.std(ddof=1))
    low, high = float(found.low), float(found.high)
    return Estimated(choice, variant.label, formula, found.difference, low, high, spread, len(bias_R))
