"""Small histories and lists for the tests of the loop."""

import numpy as np

from unveil.simulation.feedback.figures import Lists
from unveil.simulation.feedback.responses import Offer


def random_histories(seed: int, users: int = 12, items: int = 30) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, items + 1)
    lengths = rng.integers(2, 8, users)
    return [list(map(int, rng.choice(items, n, replace=False, p=weight / weight.sum()))) for n in lengths]


def offer_of(top: object, n_items: int = 10, gamma: object = None, score: object = None) -> Offer:
    top_UK = np.array(top, np.int32)
    score_UK = np.zeros(top_UK.shape, np.float32) if score is None else np.array(score, np.float32)
    gamma_UK = None if gamma is None else np.array(gamma, float)
    return Offer(Lists(top_UK, score_UK), np.arange(n_items), gamma_UK)
