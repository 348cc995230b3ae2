"""Self-normalised ITPS, over all logs of two kinds of slots: biased, by a term that falls as one over their number."""

from itertools import product
from math import comb

import numpy as np
import pytest
import torch

from unveil.data.slots import Slots
from unveil.estimators.base import Signal, cloze_risk
from unveil.estimators.itps import ITPS
from unveil.propensity.known import Logged

THETA = np.array([0.2, 0.7])
SLOTS = Slots(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([0, 0]), torch.tensor([0, 1]))
F_MV = torch.tensor([[2.0, 0.0], [1.5, 0.0]], dtype=torch.float64)


def risk(signal: Signal, normaliser: float) -> float:
    return cloze_risk(F_MV, torch.eye(2).double(), torch.zeros(2).double(), signal, normaliser=normaliser).item()


def bias(n: int) -> float:
    """E[Σ w ℓ / Σ w] less the mean loss of all slots, relative: n slots of each kind, k of them seen."""
    weight_M = ITPS(Logged(THETA), self_normalised=True)(SLOTS).weight_M.double()
    ideal, mean, something = risk(Signal(SLOTS.item_M, torch.ones(2)), 2.0), 0.0, 0.0
    for seen in product(range(n + 1), repeat=2):
        if any(seen):
            p = np.prod([comb(n, k) * q**k * (1 - q) ** (n - k) for k, q in zip(seen, THETA, strict=True)])
            held_M = weight_M * torch.tensor(seen)
            mean += p * risk(Signal(SLOTS.item_M, held_M), float(held_M.sum()))
            something += p
    return (mean / something - ideal) / ideal


def test_consistent_with_a_bias_that_falls_as_one_over_the_slots() -> None:
    few, more, many = (abs(bias(n)) for n in (4, 16, 32))
    assert few > 0.05
    assert few > 2.5 * more > 4 * many
    assert more == pytest.approx(2 * many, rel=0.3)
