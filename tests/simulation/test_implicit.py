"""Worlds behind a log without ratings: the split by hand, and that nothing is lost by it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.simulation.rated import rated
from unveil.errors import UnveilError
from unveil.propensity.factors import Factors
from unveil.simulation.fit import Fit
from unveil.simulation.implicit import implicit_worlds, relevance

FIT = Fit(steps=10, exposure={"width": 2, "sweeps": 4, "burn_in": 2}, real_lengths=True)


def cube(factors: Factors) -> NDArray[np.float32]:
    """logit_UVT, by brute force."""
    return np.asarray(np.einsum("uk,vk,tk->uvt", factors.P_UK, factors.Q_VK, factors.W_TK))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), liked=st.floats(0, 1))
def test_taste_is_what_is_personal_and_steady(seed: int, liked: float) -> None:
    rng = np.random.default_rng(seed)
    psi = Factors.of(*(rng.normal(size=(size, 3)) for size in (5, 6, 4)))
    mean_UV = cube(psi).mean(2)
    item_V = mean_UV.mean(0) - mean_UV.mean()
    personal_UV = mean_UV - mean_UV.mean(0) - mean_UV.mean(1, keepdims=True) + mean_UV.mean()
    expected_UVT = np.repeat((personal_UV + liked * item_V)[:, :, None], 4, axis=2)
    np.testing.assert_allclose(cube(relevance(psi, liked)), expected_UVT, atol=1e-4)


def test_relevance_and_exposure_add_up_to_what_is_taken() -> None:
    log = replace(rated(), rating=None)
    none, whole = implicit_worlds(log, FIT, (0.0, 1.0))
    slots = np.zeros(3, np.int64), np.array([0, 4, 9])
    together = [world.relevance_logits.logits(*slots) + world.exposure_logits.logits(*slots) for world in (none, whole)]
    np.testing.assert_allclose(together[0], together[1], atol=1e-4)
    popularity = [world.exposure_logits.logits(*slots).std() for world in (none, whole)]
    assert popularity[1] != popularity[0]
    assert none.origin["liked"] == 0.0
    assert len(none.log(np.random.default_rng(0))) > 0


def test_a_share_is_a_share() -> None:
    with pytest.raises(UnveilError, match="between 0 and 1"):
        implicit_worlds(rated(), FIT, (1.5,))
