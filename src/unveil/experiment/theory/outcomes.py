"""All that can happen at a slot, with its probability: exposure O, choice C and relevance R, and so Y = C · O · R.

Shapes: S slots, V items; V1 is V + 1, the last place standing for no event.
"""

from itertools import product
from typing import Literal

import numpy as np

from unveil.experiment.theory.laid_open import LaidOpen, Table
from unveil.simulation.choice import ChoiceModel

#: R ~ Ber(γ) drawn apart from O (the paper's); always 1; or drawn with the same luck as O, the two then dependent.
Relevance = Literal["drawn", "certain", "same luck"]
_NONE = -1  # the last place of a row


def event_probability(laid: LaidOpen, choice: ChoiceModel, relevance: Relevance = "drawn") -> Table:
    """P_SV1: P(the slot's event is item i), and that of no event: the sum over all O in {0, 1}^V, all C, and R of C."""
    n_slots, n_items = laid.theta_SV.shape
    p_SV1 = np.zeros((n_slots, n_items + 1))
    for shown in product((False, True), repeat=n_items):
        shown_SV = np.broadcast_to(shown, (n_slots, n_items))
        p_shown_S = np.where(shown_SV, laid.theta_SV, 1 - laid.theta_SV).prod(1)
        p_chosen_SV = choice.probability(laid.logit_SV, shown_SV)
        p_liked_SV = _relevance(laid, np.array(shown), relevance)
        p_SV1[:, _NONE] += p_shown_S * (1 - p_chosen_SV.sum(1))
        for item, liked in product(range(n_items), (False, True)):
            p_R_S = p_liked_SV[:, item] if liked else 1 - p_liked_SV[:, item]
            event = item if shown[item] and liked else _NONE
            p_SV1[:, event] += p_shown_S * p_chosen_SV[:, item] * p_R_S
    return p_SV1


def ideal_weight(laid: LaidOpen, choice: ChoiceModel, relevance: Relevance = "drawn") -> Table:
    """W_SV: what item i counts in L_ideal on average, P(C_i = 1 | all items are seen) · E[R_i].

    For a rational user this is γ of the favourite and 0 elsewhere, the paper's L_ideal with its C fixed. For a user
    who chooses by chance L_ideal is itself random, and this is its mean over C. Where every choice is an interaction
    (R = 1) there is no γ to weigh by, and each choice counts 1.
    """
    seen_SV = np.ones(laid.logit_SV.shape, bool)
    chosen_SV = choice.probability(laid.logit_SV, seen_SV)
    return chosen_SV if relevance == "certain" else chosen_SV * laid.gamma_SV


def _relevance(laid: LaidOpen, shown_V: np.ndarray[tuple[int], np.dtype[np.bool_]], relevance: Relevance) -> Table:
    """P(R_i = 1 | O)."""
    if relevance == "certain":
        return np.ones_like(laid.gamma_SV)
    if relevance == "drawn":
        return laid.gamma_SV
    # One uniform number u for both, O = [u < θ] and R = [u < γ]: the conditional chance that u < γ.
    theta_SV, gamma_SV = laid.theta_SV, laid.gamma_SV
    if_shown_SV = np.minimum(theta_SV, gamma_SV) / theta_SV
    if_not_SV = np.maximum(gamma_SV - theta_SV, 0) / np.maximum(1 - theta_SV, np.finfo(float).tiny)
    return np.where(shown_V, if_shown_SV, if_not_SV)
