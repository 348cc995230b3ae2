"""Foresight: exposure that follows relevance, as where a recommender already knows something of its users' taste.

Shapes: U users, V items, T steps, S slots, B slots looked at, K factors.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.propensity.factors import Factors, Floats

if TYPE_CHECKING:
    from unveil.simulation.world import World

Matrix = NDArray[np.float64]

#: Slots looked at, evenly spread, to keep the mean exposure; and halvings of an interval of a few logits.
_SAMPLE, _HALVINGS = 512, 30


def foreseen(world: "World", strength: float) -> "World":
    """Exposure logit + strength · z + c, where z is the standardised relevance logit and c keeps the mean exposure.

    z has mean 0 and variance 1 over all slots and items, so that `strength` counts logits per standard deviation of
    the relevance logit. Spread alone would raise or lower the mean of θ = σ(logit)^p; the constant c takes that back,
    at the world's own severity p, over evenly spread slots. Below 0, what is relevant is shown less.
    """
    if not np.isfinite(strength):
        raise UnveilError("the foresight is out of range", found=strength, expected="a number")
    if strength == 0:
        return world
    mean, deviation = logit_moments(world)
    if deviation < 1e-6 * max(1.0, abs(mean)):
        raise UnveilError("exposure cannot follow relevance: all items are equally relevant in this world")
    scale = strength / deviation
    moved = world.exposure_logits.plus(world.relevance_logits, scale)
    constant = _same_mean(world, moved)
    origin = {**world.origin, "foresight": world.origin.get("foresight", 0.0) + strength}
    return replace(world, exposure_logits=_plus_constant(moved, constant), origin=origin)


def logit_moments(world: "World") -> tuple[float, float]:
    """Mean and standard deviation of the relevance logit over all slots and items, from the factors alone.

    With a = P_s ∘ W_t, the logit is Σ_k a_k Q_ik: its moments are those of a over slots times those of Q over items.
    """
    Q_VK = world.relevance_logits.Q_VK.astype(np.float64)
    first_K, second_KK = _slot_moments(world)
    mean = float(first_K @ Q_VK.mean(0))
    square = float((second_KK * (Q_VK.T @ Q_VK / len(Q_VK))).sum())
    return mean, float(np.sqrt(max(square - mean**2, 0.0)))


def _slot_moments(world: "World") -> tuple[NDArray[np.float64], Matrix]:
    """E[a] and E[a aᵀ] over the slots: users who join at the same step share their steps, so they go together."""
    P_UK, W_TK = (table.astype(np.float64) for table in (world.relevance_logits.P_UK, world.relevance_logits.W_TK))
    first_K, second_KK = np.zeros(P_UK.shape[1]), np.zeros((P_UK.shape[1], P_UK.shape[1]))
    for start in np.unique(world.start_U):
        P_BK, W_BK = P_UK[world.start_U == start], W_TK[start:]
        first_K += P_BK.sum(0) * W_BK.sum(0)
        second_KK += (P_BK.T @ P_BK) * (W_BK.T @ W_BK)
    slots = float((world.n_steps - world.start_U.astype(np.int64)).sum())
    return first_K / slots, second_KK / slots


def _same_mean(world: "World", moved: Factors) -> float:
    """The constant that brings the mean of θ back to what it was, by halving: θ rises with it."""
    user_S, step_S = world.slots()
    spread = np.linspace(0, len(user_S) - 1, min(_SAMPLE, len(user_S))).astype(np.int64)
    user_B, step_B = user_S[spread], step_S[spread]
    wanted = _mean(world.exposure(user_B, step_B))
    logit_BV = moved.logits(user_B, step_B)
    low = high = 0.0
    while _mean(world.exposure_from(logit_BV + np.float32(low))) > wanted:
        low = 2 * low - 1
    while _mean(world.exposure_from(logit_BV + np.float32(high))) < wanted:
        high = 2 * high + 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = _mean(world.exposure_from(logit_BV + np.float32(middle))) < wanted
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def _mean(theta_BV: Floats) -> float:
    return float(theta_BV.mean(dtype=np.float64))


def _plus_constant(factors: Factors, constant: float) -> Factors:
    return factors.plus(Factors.constant(*factors.shape, constant))
