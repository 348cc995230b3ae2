"""The expectations by the equations of the paper, apart from the estimators that they check. Shapes: S slots, V items.

Each function gives E_SV: what item i counts at a slot on average, given p_SV = P(the event is i). A loss with these
weights is E[L]; divided by the slot's sum they are the softmax that minimises it there.
"""

import numpy as np

from unveil.experiment.theory.laid_open import LaidOpen, Table
from unveil.experiment.theory.variants import Variant


def expected_weight(variant: Variant, laid: LaidOpen, p_SV: Table) -> Table | None:
    """E_SV of a variant; None where its loss is no sum over events that are weighted each by itself."""
    if variant.options.get("self_normalised"):
        return None
    if variant.name == "itps":
        return np.asarray(p_SV / np.maximum(_told(variant, laid), variant.options.get("clip", 0.0)))
    plain = {"naive": naive, "ips": ips, "ideal": ideal}
    return plain[variant.name](laid, p_SV) if variant.name in plain else None


def naive(laid: LaidOpen, p_SV: Table) -> Table:
    """E[Y_i] (eq. of L_Cloze)."""
    return p_SV


def ips(laid: LaidOpen, p_SV: Table) -> Table:
    """E[Y_i] / θ_si, θ_si the mean of θ_sit over all T steps (eq. of L_IPS)."""
    world, user_U = laid.world, np.arange(laid.world.n_users)
    total_UV = np.zeros((world.n_users, world.n_items))
    for step in range(world.n_steps):
        total_UV += world.exposure(user_U, np.full(len(user_U), step))
    return p_SV / (total_UV / world.n_steps)[laid.user_S]


def ideal(laid: LaidOpen, p_SV: Table) -> Table:
    """P(there is an event) · γ of the favourite: in training L_ideal, too, is summed over the log's slots alone."""
    favourite_SV = np.arange(p_SV.shape[1]) == laid.favourite_S[:, None]
    return np.where(favourite_SV, laid.gamma_SV * p_SV.sum(1, keepdims=True), 0.0)


def relative_bias(expected_SV: Table, ideal_SV: Table, loss_SV: Table) -> float:
    """(E[L] − L_ideal) / L_ideal of fixed scores, whose losses −log softmax(f)[i] are given."""
    return float((expected_SV * loss_SV).sum() / (ideal_SV * loss_SV).sum()) - 1


def _told(variant: Variant, laid: LaidOpen) -> Table:
    """θ_sit, or what the estimator is told instead (eq. of L_ITPS)."""
    if variant.propensity is None:
        return laid.theta_SV
    theta = variant.theta(laid.world)
    assert theta is not None
    told_SV: Table = theta.of_all(laid.all_with(0)).double().numpy()
    return told_SV
