"""The minimum of a loss: flat there by the real loss's own gradient, and lower than anywhere near."""

import numpy as np
import pytest
import torch

from tests.estimators.toys import random_world
from unveil.estimators.base import Signal, cloze_risk
from unveil.simulation.theory.claims import (
    Weights,
    by_choice,
    distance,
    estimators,
    expected,
    first,
    minimisers,
    normalised,
    observed,
)
from unveil.simulation.theory.enumeration import CLOSED_FORMS, DenseWorld, Table, ideal_weight, slots_of
from unveil.simulation.theory.losses import ITPS, LossComparison, Variant

LAID = DenseWorld(random_world(users=3, items=5, steps=4, seed=2))
P_SV = CLOSED_FORMS["rational_exposed"](LAID) * LAID.gamma_SV
LOSSES = sorted(estimators(LAID.world))


def risk(f_SV: torch.Tensor, weights: Weights) -> torch.Tensor:
    """The expected loss by the real one: every item a target, at its weight, with the offset of the slot."""
    offset = None if weights.factor_SV is None else torch.from_numpy(weights.factor_SV).log()
    eye, zero = torch.eye(f_SV.shape[1], dtype=torch.float64), torch.zeros(f_SV.shape[1], dtype=torch.float64)
    total = torch.zeros((), dtype=torch.float64)
    for item in range(f_SV.shape[1]):
        signal = Signal(torch.full((len(f_SV),), item), torch.from_numpy(weights.weight_SV[:, item]), offset)
        total = total + cloze_risk(f_SV, eye, zero, signal, normaliser=1.0)
    return total


def logits(p: Table) -> torch.Tensor:
    return torch.from_numpy(np.log(np.maximum(p, 1e-30)))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_is_flat_at_its_minimum_slot_by_slot(loss: str) -> None:
    weights = expected(estimators(LAID.world)[loss], LAID, P_SV)
    f_SV = logits(weights.by_slot()).requires_grad_()
    (slope_SV,) = torch.autograd.grad(risk(f_SV, weights), f_SV)
    assert slope_SV.abs().max() < 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_and_user_by_user(loss: str) -> None:
    weights = expected(estimators(LAID.world)[loss], LAID, P_SV)
    f_UV = logits(weights.by_user(LAID.user_S)).requires_grad_()
    (slope_UV,) = torch.autograd.grad(risk(f_UV[LAID.user_S], weights), f_UV)
    assert slope_UV.abs().max() < 1e-4  # the iteration stops when it hardly moves


def test_the_expected_weights_are_those_of_the_logs() -> None:
    # One slot in which item 3 was taken with certainty gives the weight of that event.
    sure_SV = np.zeros_like(P_SV)
    sure_SV[:, 3] = 1.0
    weights = expected(ITPS.build(LAID.world), LAID, sure_SV)
    log = observed(ITPS.build(LAID.world), LAID, LAID.all_with(3))
    np.testing.assert_allclose(weights.weight_SV, log.weight_SV)
    np.testing.assert_allclose(weights.weight_SV[:, 3], 1 / LAID.theta_SV[:, 3], rtol=1e-5)


def test_one_log_has_the_offset_of_its_own_slots() -> None:
    slots = slots_of(LAID.user_S[[5, 2]], np.array([1, 0]), LAID.step_S[[5, 2]])
    found = observed(estimators(LAID.world)["corrected"], LAID, slots)
    assert found.factor_SV is not None
    assert np.argwhere(found.weight_SV).tolist() == [[2, 0], [5, 1]]
    np.testing.assert_allclose(found.factor_SV[[2, 5]], LAID.theta_SV[[2, 5]], rtol=1e-5)


def test_a_loss_over_rivals_has_no_such_minimum() -> None:
    with pytest.raises(ValueError, match="no cross-entropy of one target"):
        expected(Variant("rational", "rational").build(LAID.world), LAID, P_SV)


def test_distance_and_first_by_hand() -> None:
    assert distance(np.array([[0.5, 0.5, 0.0]]), np.array([[0.0, 0.5, 0.5]])) == pytest.approx(0.5)
    p_SV = np.zeros_like(P_SV)
    assert first(p_SV, LAID) == 0.0  # knowing nothing is no luck
    p_SV[np.arange(len(LAID)), LAID.favourite_S] = 1.0
    assert first(p_SV, LAID) == 1.0
    assert normalised(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist() == [[0.25, 0.75], [0.0, 0.0]]


def test_the_distances_say_for_whom_a_loss_learns_the_truth() -> None:
    found = by_choice(LAID.world)
    assert found["rational_all"]["naive"] == 0.0  # the log holds nothing but favourites
    assert found["categorical_all"]["ITPS"] < 1e-6 < found["categorical_all"]["naive"]
    assert found["rational_exposed"]["ITPS"] > 0.1
    assert found["rational_exposed"]["ITPS"] == pytest.approx(found["rational_exposed"]["corrected"], abs=1e-6)
    assert found["rational_exposed"]["ideal"] == 0.0


def test_minimisers_of_a_small_world() -> None:
    rows = {row["estimator"]: row for row in minimisers(LAID.world, 3, 0)}
    assert set(rows) == set(LOSSES)
    assert rows["ITPS"]["slot_first"] == 1.0  # Π(1 − θ) of the better ones falls along the order, and γ with it
    assert rows["ideal"]["slot_distance"] == 0.0
    assert rows["naive"]["slot_first"] < 1.0
    assert rows["corrected"]["bias"] is None
    loss_SV = LossComparison.of(LAID.world, 0).loss_SV
    by_hand = float((P_SV / LAID.theta_SV * loss_SV).sum() / (ideal_weight(LAID, "rational_all") * loss_SV).sum()) - 1
    assert rows["ITPS"]["bias"] == pytest.approx(by_hand, rel=1e-5)
    for row in rows.values():
        assert 0 <= row["user_distance"] <= 1
        assert row["low"] <= row["log_first"] <= row["high"]
    again = {row["estimator"]: row for row in minimisers(LAID.world, 3, 0)}
    assert rows == again


def test_the_ideal_of_one_user_is_the_share_of_each_favourite() -> None:
    ideal = Weights(ideal_weight(LAID, "rational_all"), None).by_user(LAID.user_S)
    mine = LAID.user_S == 1
    share_V = np.bincount(
        LAID.favourite_S[mine], LAID.gamma_SV[mine, LAID.favourite_S[mine]], minlength=LAID.world.n_items
    )
    np.testing.assert_allclose(ideal[1], share_V / share_V.sum())
