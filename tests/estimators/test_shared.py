"""One f for slots of different exposure: who keeps the favourite of a user who takes the best of the exposed first?"""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from unveil.estimators.base import Signal, cloze_risk


def taken(theta_TV: np.ndarray) -> np.ndarray:
    """P(i) = θ_i Π_{j better} (1 − θ_j) at each step; items are in the order of tastes."""
    before_TV = np.cumprod(np.insert(1 - theta_TV, 0, 1, axis=1), axis=1)[:, :-1]
    return np.asarray(theta_TV * before_TV)


def signal(name: str, theta_TV: np.ndarray) -> Signal:
    """Every item of every step as a slot that counts by how often it is taken there: the expected loss."""
    T, V = theta_TV.shape
    theta_MV, target_M = torch.from_numpy(np.repeat(theta_TV, V, axis=0)), torch.arange(V).repeat(T)
    weight_M = torch.from_numpy(taken(theta_TV).ravel())
    if name == "corrected":
        return Signal(target_M, weight_M, offset_MV=theta_MV.log())
    if name == "rational":
        return Signal(target_M, weight_M, rival_MV=-torch.log1p(-theta_MV))
    return Signal(target_M, weight_M / theta_MV.gather(1, target_M[:, None])[:, 0])


def least(name: str, theta_TV: np.ndarray) -> np.ndarray:
    """f_V of least expected loss, as the trainer computes it, less that of the last item."""
    made, nothing = signal(name, theta_TV), torch.zeros(theta_TV.size, 1, dtype=torch.float64)

    def risk(f_V: np.ndarray) -> tuple[float, np.ndarray]:
        bias_V = torch.from_numpy(f_V).requires_grad_()
        loss = cloze_risk(nothing, torch.zeros(len(f_V), 1, dtype=torch.float64), bias_V, made)
        return loss.item(), torch.autograd.grad(loss, bias_V)[0].numpy()

    found = minimize(risk, np.zeros(theta_TV.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return np.asarray(found.x - found.x[-1])


@pytest.mark.parametrize(
    ("name", "expected_V"), [("corrected", [0.12, 2.17, 0]), ("rational", [0.39, 1.69, 0]), ("itps", [0.69, 0.64, 0])]
)
def test_an_example_of_two_steps(name: str, expected_V: list[float]) -> None:
    theta_TV = np.array([[0.1, 0.001, 0.5], [0.0001, 0.9, 0.5]])
    np.testing.assert_allclose(least(name, theta_TV), expected_V, atol=0.006)


def test_only_weights_keep_the_favourite_first_whatever_the_exposure() -> None:
    rng = np.random.default_rng(1)
    worlds = [rng.uniform(0.02, 0.9, (3, 5)) ** 2 for _ in range(40)]
    lost = {name: sum(least(name, each).argmax() != 0 for each in worlds) for name in ("corrected", "rational", "itps")}
    assert lost["itps"] == 0
    assert 0 < lost["corrected"] < 10
    assert 0 < lost["rational"] < 10


def test_at_one_slot_rational_is_corrected_with_the_intensity_in_the_place_of_the_chance() -> None:
    theta_TV = np.array([[0.05, 0.3, 0.6, 0.9]])
    expected_V = np.log(taken(theta_TV)[0] / -np.log1p(-theta_TV[0]))
    np.testing.assert_allclose(least("rational", theta_TV), expected_V - expected_V[-1], atol=1e-5)
