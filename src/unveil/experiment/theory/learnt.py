"""What minimises a loss. The expectation of any loss here is −Σ_s Σ_i E_si log softmax(f_s + b_s)[i].

With f free at every slot its minimum is softmax(f_s) ∝ E_si · exp −b_si: the expected weights, normalised. A model that
shares f between slots, such as all steps of a user, minimises the sum. Shapes: S slots, V items, U users.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.data.slots import Slots
from unveil.estimators.base import Estimator, Signal
from unveil.experiment.theory.laid_open import LaidOpen, Table

#: The iteration for losses with an offset ends when no probability moves by more than this, or after so many rounds.
_STILL, _ROUNDS = 1e-6, 200
_TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Weights:
    """E_SV, and exp b_SV where the loss has an offset."""

    weight_SV: Table
    factor_SV: Table | None

    def by_slot(self) -> Table:
        """The softmax that minimises the loss at each slot by itself."""
        return normalised(self.weight_SV if self.factor_SV is None else self.weight_SV / self.factor_SV)

    def by_user(self, user_S: NDArray[Any]) -> Table:
        """The softmax of each user that minimises the loss over all of the user's slots."""
        pool_US = sparse.csr_matrix((np.ones(len(user_S)), (user_S, np.arange(len(user_S)))))
        if self.factor_SV is None:
            return normalised(pool_US @ self.weight_SV)
        return _shared(self.weight_SV, self.factor_SV, user_S, pool_US)


def expected(estimator: Estimator, laid: LaidOpen, p_SV: Table) -> Weights:
    """E_SV over all logs, where p_SV = P(the slot's event is item i): an estimator looks at each event by itself."""
    weight_SV, rows = np.zeros_like(p_SV), np.arange(len(laid))
    for item in range(p_SV.shape[1]):
        signal = _cross_entropy(estimator(laid.all_with(item)))
        weight_SV[rows, signal.target_M.numpy()] += p_SV[:, item] * signal.weight_M.numpy()
    return Weights(weight_SV, None if signal.offset_MV is None else np.exp(signal.offset_MV[:].double().numpy()))


def observed(estimator: Estimator, laid: LaidOpen, slots: Slots) -> Weights:
    """The weights of one log."""
    signal, row_M = _cross_entropy(estimator(slots)), laid.rows(slots).numpy()
    weight_SV = np.zeros_like(laid.theta_SV)
    weight_SV[row_M, signal.target_M.numpy()] = signal.weight_M.numpy()
    if signal.offset_MV is None:
        return Weights(weight_SV, None)
    factor_SV = np.ones_like(weight_SV)
    factor_SV[row_M] = np.exp(signal.offset_MV[:].double().numpy())
    return Weights(weight_SV, factor_SV)


def _cross_entropy(signal: Signal) -> Signal:
    if any(part is not None for part in (signal.rival_MV, signal.imputed_MV, signal.theta_MV, signal.sample)):
        raise ValueError("this loss is no cross-entropy of one target over all items: its minimum is not known here")
    return signal


def normalised(weight: Table) -> Table:
    """Rows that sum to one; rows without weight stay zero."""
    return np.asarray(weight / np.maximum(weight.sum(1, keepdims=True), _TINY))


def _shared(weight_SV: Table, factor_SV: Table, user_S: NDArray[Any], pool_US: Any) -> Table:
    """x_i ← Σ_s E_si / Σ_s (E_s · factor_si / Σ_j factor_sj x_j): each round lowers the loss, to its one minimum."""
    total_UV, total_S = pool_US @ weight_SV, weight_SV.sum(1)
    x_UV = normalised(pool_US @ (weight_SV / factor_SV))
    for _ in range(_ROUNDS):
        mass_S = np.einsum("sv,sv->s", factor_SV, x_UV[user_S])
        pull_UV = pool_US @ (factor_SV * (total_S / np.maximum(mass_S, _TINY))[:, None])
        before_UV, x_UV = x_UV, normalised(total_UV / np.maximum(pull_UV, _TINY))
        if np.abs(x_UV - before_UV).max() < _STILL:
            break
    return x_UV
