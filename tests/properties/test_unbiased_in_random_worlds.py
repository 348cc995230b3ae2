"""Propositions in worlds drawn at random: for every user and every score, not for a lucky few."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.estimators.toys import random_world
from unveil.simulation.theory.claims import TOLERANCE, expected
from unveil.simulation.theory.enumeration import CLOSED_FORMS, DenseWorld, ideal_weight
from unveil.simulation.theory.losses import IPS, ITPS, NAIVE, LossComparison

SEEDS = st.integers(0, 10_000)
MANY = settings(max_examples=15, deadline=None)


@MANY
@given(seed=SEEDS, items=st.integers(2, 4), severity=st.floats(0.3, 4.0))
@pytest.mark.parametrize("choice", ["rational_all", "categorical_all"])
def test_itps_is_unbiased_where_the_choice_ignores_exposure(
    choice: str, seed: int, items: int, severity: float
) -> None:
    world = random_world(users=1, items=items, steps=2, seed=seed).with_severity(severity)
    assert abs(LossComparison.of(world, seed).compare(ITPS, choice).bias) < TOLERANCE


@MANY
@given(seed=SEEDS)
def test_ips_is_unbiased_where_exposure_keeps_still(seed: int) -> None:
    world = random_world(users=2, items=2, steps=2, seed=seed, moving=False)
    assert abs(LossComparison.of(world, seed).compare(IPS, "categorical_all").bias) < TOLERANCE


@MANY
@given(seed=SEEDS, severity=st.sampled_from([1.0, 2.0, 4.0]))
def test_itps_gives_too_much_to_whoever_is_not_the_favourite(seed: int, severity: float) -> None:
    # For the rational user among the exposed: right for the favourite, γ_i Π(1 − θ_j) too much for every other item i,
    # over the items j that are better; nothing too much only where one of them is exposed for sure.
    dense = DenseWorld(random_world(users=2, items=6, steps=3, seed=seed).with_severity(severity))
    p_SV = CLOSED_FORMS["rational_exposed"](dense) * dense.gamma_SV
    surplus_SV = expected(ITPS.build(dense.world), dense, p_SV).weight_SV - ideal_weight(dense, "rational_all")
    favourite_SV = np.arange(dense.world.n_items) == dense.favourite_S[:, None]
    np.testing.assert_allclose(surplus_SV[favourite_SV], 0, atol=1e-5)
    for slot, item in np.argwhere(~favourite_SV):
        better_V = dense.logit_SV[slot] > dense.logit_SV[slot, item]
        left_over = dense.gamma_SV[slot, item] * np.prod(1 - dense.theta_SV[slot, better_V])
        np.testing.assert_allclose(surplus_SV[slot, item], left_over, rtol=1e-4, atol=1e-6)


@MANY
@given(seed=SEEDS, severity=st.sampled_from([1.0, 2.0, 4.0]))
def test_its_minimum_orders_items_by_relevance_and_that_of_the_naive_loss_need_not(seed: int, severity: float) -> None:
    dense = DenseWorld(random_world(users=2, items=6, steps=3, seed=seed).with_severity(severity))
    p_SV = CLOSED_FORMS["rational_exposed"](dense) * dense.gamma_SV
    learnt_SV = expected(ITPS.build(dense.world), dense, p_SV).by_slot()
    order_SV = np.argsort(-dense.logit_SV, axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(learnt_SV, order_SV, 1), axis=1) <= 0).all()
    naive_SV = expected(NAIVE.build(dense.world), dense, p_SV).by_slot()
    np.testing.assert_allclose(naive_SV, p_SV / p_SV.sum(1, keepdims=True), rtol=1e-6)
