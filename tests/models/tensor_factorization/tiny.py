"""Small cubes with known factors. Shapes: U users, V items, T steps, N tuples."""

import numpy as np
from numpy.typing import NDArray

from unveil.models.tensor_factorization.task import Tuples

Values = NDArray[np.float64]


def some(count: int, shape: tuple[int, int, int], seed: int = 0) -> Tuples:
    """Distinct tuples anywhere in the cube, with standard normal values."""
    rng = np.random.default_rng(seed)
    key_N = np.sort(rng.choice(int(np.prod(shape)), count, replace=False))
    user_N, item_N, step_N = np.unravel_index(key_N, shape)
    return Tuples(user_N, item_N, step_N, rng.standard_normal(count), shape)


def from_factors(count: int, shape: tuple[int, int, int], seed: int, noise: float = 0.3) -> tuple[Tuples, Values]:
    """Ratings 3.5 + Σ_k P_sk Q_ik W_tk + b_s + c_i + noise with two factors, and what they are without the noise."""
    rng = np.random.default_rng(seed)
    tuples = some(count, shape, seed)
    P_UK, Q_VK = (rng.standard_normal((size, 2)) for size in shape[:2])
    W_TK = 1 + 0.3 * np.sin(np.arange(shape[2])[:, None] / 3 + np.arange(2))
    b_U, c_V = (0.3 * rng.standard_normal(size) for size in shape[:2])
    s, i, t = tuples.sides
    truth_N = 3.5 + (P_UK[s] * Q_VK[i] * W_TK[t]).sum(1) + b_U[s] + c_V[i]
    value_N = truth_N + noise * rng.standard_normal(count)
    return Tuples(s, i, t, value_N, shape), truth_N
