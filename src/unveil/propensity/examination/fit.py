"""Examination apart from attraction, in the position-based click model. Shapes: P placings, K positions, V items.

P(click | item i at position k) = e_k · r_i: the position is examined, and then the item attracts. Of an item's clicks
the share at position k is on average n_ik e_k / Σ_l n_il e_l, whatever r_i is (n: times shown). So r is never needed:

    ℓ(e) = Σ_i Σ_k c_ik log( n_ik e_k / Σ_l n_il e_l ),

the likelihood of where clicks fell given how many there were. It is concave in log e; its gradient has mean 0 at the
true e whether clicks are rare or not and however seldom an item is shown. (The likelihood of clicks itself, which EM
climbs, is not so forgiving: it has an r_i to learn for each item, and items that are shown a few times drag e along.)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import chdtrc

from unveil.errors import refuse_unless
from unveil.propensity.examination.counts import Placings, summed

Floats = NDArray[np.float64]

#: Steps at most; and the gradient, as a share of all clicks, at which the top is reached.
_STEPS, _FLAT = 50, 1e-10
#: How far a step leads at most, in log e; and how often it is halved.
_FAR, _HALVINGS = 3.0, 30


def examined(telling: Placings, add: float) -> Floats:
    """e_K relative to the position that is examined best, which has 1.

    Beside the log there is one more item, shown everywhere alike and clicked `add` times at each position: it keeps
    every e above 0, and draws those that few clicks tell of towards each other.
    """
    refuse_unless(add > 0, "position.add", add, "above 0")
    likelihood = _Likelihood(telling, add)
    alpha_K = np.zeros(len(telling.position_K))
    for _ in range(_STEPS):
        gradient_K, information_KK = likelihood.slope(alpha_K)
        if np.abs(gradient_K).max() <= _FLAT * likelihood.clicks:
            break
        alpha_K = _uphill(likelihood, alpha_K, np.linalg.solve(information_KK, gradient_K))
    return np.asarray(np.exp(alpha_K))


def alike(telling: Placings) -> float:
    """p of a score test that all positions are examined alike: at e = 1, gᵀ I⁻¹ g is χ² with K − 1 degrees.

    I is that of rare clicks; where they are not rare the gradient varies less, and p is too large, not too small.
    """
    gradient_K, information_KK = _Likelihood(telling, 0.0).slope(np.zeros(len(telling.position_K)))
    score = float(gradient_K @ np.linalg.solve(information_KK, gradient_K))
    return float(chdtrc(len(gradient_K) - 1, score))


class _Likelihood:
    """ℓ of log e, with the added item as the last."""

    def __init__(self, telling: Placings, add: float) -> None:
        K = len(telling.position_K)
        _, item_P = np.unique(telling.item_P, return_inverse=True)
        every_K, last = np.ones(K), int(item_P.max(initial=-1)) + 1
        self.item_P = np.concatenate([item_P, np.full(K, last)])
        self.place_P = np.concatenate([telling.place_P, np.arange(K)])
        self.shown_P = np.concatenate([telling.shown_P, every_K])
        self.clicked_P = np.concatenate([telling.clicked_P, add * every_K])
        self.clicked_V = summed(self.item_P, self.clicked_P)
        self.clicks = float(self.clicked_V.sum())
        self.shape = (last + 1, K)

    def __call__(self, alpha_K: Floats) -> float:
        """ℓ, less what does not depend on e."""
        total_V = summed(self.item_P, self._weight(alpha_K))
        return float(self.clicked_P @ alpha_K[self.place_P] - self.clicked_V @ np.log(total_V))

    def slope(self, alpha_K: Floats) -> tuple[Floats, Floats]:
        """Its gradient, and minus its second derivatives; a step along equal α, which changes nothing, costs."""
        weight_P = self._weight(alpha_K)
        share_P = weight_P / summed(self.item_P, weight_P)[self.item_P]
        due_P = self.clicked_V[self.item_P] * share_P
        gradient_K, due_K = (summed(self.place_P, each_P) for each_P in (self.clicked_P - due_P, due_P))
        share_VK, due_VK = (
            csr_array((each_P, (self.item_P, self.place_P)), shape=self.shape) for each_P in (share_P, due_P)
        )
        information_KK = np.diag(due_K) - (share_VK.T @ due_VK).toarray()
        return gradient_K, information_KK + due_K.mean() / self.shape[1]

    def _weight(self, alpha_K: Floats) -> Floats:
        return np.asarray(self.shown_P * np.exp(alpha_K[self.place_P]))


def _uphill(likelihood: _Likelihood, alpha_K: Floats, step_K: NDArray[Any]) -> Floats:
    """As much of a step, halved and halved, as does not lead down; the largest α is 0."""
    step_K = step_K / max(1.0, np.abs(step_K).max() / _FAR)
    before = likelihood(alpha_K)
    for halvings in range(_HALVINGS):
        after_K = alpha_K + step_K * 0.5**halvings
        if likelihood(after_K) >= before:
            return np.asarray(after_K - after_K.max())
    return alpha_K
