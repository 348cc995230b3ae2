"""The bias of each loss under each way of choosing, exactly; and the chance of each choice against its formula."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unveil.experiment.theory.closed_form import CLOSED_FORMS
from unveil.experiment.theory.enumerated import Enumerated, choice_depends_on_exposure
from unveil.experiment.theory.outcomes import Relevance, event_probability
from unveil.experiment.theory.variants import IPS, ITPS, NAIVE
from unveil.simulation.choice import CHOICES, choice_model

_LOSSES = (NAIVE, IPS, ITPS)
_RELEVANCE: Sequence[Relevance] = ("drawn", "certain")


@dataclass(frozen=True)
class Chooser:
    """One way of choosing, with or without a draw of relevance."""

    choice: str
    relevance: Relevance
    depends_on_exposure: bool
    bias: Mapping[str, float]
    formula_error: float | None  # largest difference of P(event) from its closed form over slots and items


def choosers(where: Enumerated) -> list[Chooser]:
    """Every choice model of the registry."""
    return [
        Chooser(
            choice,
            relevance,
            choice_depends_on_exposure(where.laid, choice_model(choice)),
            {variant.label: where.compare(variant, choice, relevance).bias for variant in _LOSSES},
            _formula_error(where, choice, relevance),
        )
        for relevance in _RELEVANCE
        for choice in CHOICES
    ]


def _formula_error(where: Enumerated, choice: str, relevance: Relevance) -> float | None:
    if choice not in CLOSED_FORMS:
        return None
    formula_SV = CLOSED_FORMS[choice](where.laid) * (where.laid.gamma_SV if relevance == "drawn" else 1.0)
    listed_SV = event_probability(where.laid, choice_model(choice), relevance)[:, :-1]
    return float(np.abs(formula_SV - listed_SV).max())
