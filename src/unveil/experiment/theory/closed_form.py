"""P(item i is chosen and exposed) by formula: what the enumeration must find, and worlds too large to enumerate use.

Shapes: S slots, V items.
"""

from collections.abc import Callable, Mapping

import numpy as np

from unveil.experiment.theory.laid_open import LaidOpen, Table

#: Where the integral over exp v is summed: the beginning and the width of the grid, and γ · exp v at its end.
_FIRST, _WIDTH, _END = -20.0, 0.4, 40.0


def rational_all(laid: LaidOpen) -> Table:
    """θ_i of the favourite: a choice that ignores exposure."""
    chosen_SV = np.arange(laid.theta_SV.shape[1]) == laid.favourite_S[:, None]
    return np.where(chosen_SV, laid.theta_SV, 0.0)


def rational_exposed(laid: LaidOpen) -> Table:
    """θ_i · Π_{j better than i} (1 − θ_j): seen, and nothing better seen."""
    order_SV = np.argsort(-laid.logit_SV, axis=1, kind="stable")
    theta_SV = np.take_along_axis(laid.theta_SV, order_SV, 1)
    unseen_SV = np.cumprod(np.hstack([np.ones((len(laid), 1)), 1 - theta_SV[:, :-1]]), axis=1)
    chosen_SV = np.empty_like(theta_SV)
    np.put_along_axis(chosen_SV, order_SV, theta_SV * unseen_SV, 1)
    return chosen_SV


def categorical_all(laid: LaidOpen) -> Table:
    """θ_i · γ_i / Σ_j γ_j."""
    return np.asarray(laid.theta_SV * laid.gamma_SV / laid.gamma_SV.sum(1, keepdims=True))


def categorical_exposed(laid: LaidOpen) -> Table:
    """E[O_i γ_i / Σ_j O_j γ_j] = θ_i ∫ γ_i e^(−γ_i u) Π_{j ≠ i} (1 − θ_j + θ_j e^(−γ_j u)) du over u ≥ 0.

    A race: item j, if exposed, arrives after an exponential time of rate γ_j, and the first to arrive is taken. With
    u = exp v the integrand is smooth and vanishes at both ends, where sums over an even grid are as good as exact.
    """
    theta_SV, gamma_SV = laid.theta_SV, laid.gamma_SV
    total_SV = np.zeros_like(theta_SV)
    last = np.log(_END / max(gamma_SV.min(), np.finfo(np.float32).tiny))
    for u in np.exp(np.arange(_FIRST, last, _WIDTH)):
        late_SV = np.exp(-gamma_SV * u)
        absent_SV = np.maximum(1 - theta_SV + theta_SV * late_SV, np.finfo(float).tiny)
        nobody_S1 = absent_SV.prod(1, keepdims=True)
        total_SV += _WIDTH * u * gamma_SV * late_SV * nobody_S1 / absent_SV
    return theta_SV * total_SV


CLOSED_FORMS: Mapping[str, Callable[[LaidOpen], Table]] = {
    form.__name__: form for form in (rational_all, rational_exposed, categorical_all, categorical_exposed)
}
