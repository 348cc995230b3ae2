"""Calibration on a slice: planted effects are found, likelihoods are those of their equations, noise gains nothing."""

import numpy as np
import pytest
from scipy import optimize, stats

from unveil.evaluation.slice_calibration import Appeal, Floats, Slice, calibrate, cross_fit

N_ITEMS = 60


def drawn(
    users: int, rng: np.random.Generator, *, popularity: float = 0.0, appeal: float = 0.0, score: float = 1.0
) -> Slice:
    """Users who like each item with σ(score · f + popularity · log popularity + appeal · a − 2)."""
    log_popularity_C = np.sort(rng.normal(-5, 1.5, N_ITEMS))
    score_TC = rng.normal(size=(users, N_ITEMS))
    appeal_C = rng.normal(size=N_ITEMS)
    logit_TC = score * score_TC + popularity * (log_popularity_C + 5) + appeal * appeal_C - 2
    positive_TC = rng.random((users, N_ITEMS)) < 1 / (1 + np.exp(-logit_TC))
    item_C, user_T = np.arange(N_ITEMS, dtype=np.int32), np.arange(users, dtype=np.int32)
    whole = Slice(user_T, item_C, score_TC, positive_TC, ~positive_TC, log_popularity_C)
    return whole.some(np.asarray(positive_TC.any(1) & ~positive_TC.all(1)))


@pytest.mark.parametrize("popularity", [-1.0, 1.0])
def test_popularity_is_added_or_taken_away(popularity: float) -> None:
    learnt = calibrate(
        drawn(400, np.random.default_rng(1), popularity=popularity), np.random.default_rng(0), appeal=False
    )
    assert learnt.popularity / learnt.scale == pytest.approx(popularity, abs=0.2)


def test_appeal_is_learnt_and_helps_other_users() -> None:
    part = drawn(200, np.random.default_rng(2), appeal=1.5)
    found = cross_fit(part, np.random.default_rng(0))
    assert found.is_better
    assert found.gain.difference > 0.1
    plain = cross_fit(part, np.random.default_rng(0), calibrator=lambda p, rng: calibrate(p, rng, appeal=False))
    assert found.gain.difference > plain.gain.difference + 0.05


def test_noise_is_not_better() -> None:
    """Where the scores are all there is, calibration is called better no more often than chance allows."""
    called = sum(
        cross_fit(drawn(40, np.random.default_rng(seed)), np.random.default_rng(seed)).is_better for seed in range(20)
    )
    assert called <= 3


def test_the_prior_of_appeal_is_a_negative_binomial_regression() -> None:
    """Against scipy's negative binomial, written apart."""
    part = drawn(50, np.random.default_rng(3), popularity=0.5, appeal=0.5)
    found = Appeal.of(part)
    n_C, m_C = part.positive_TC.sum(0), part.positive_TC.sum(0) + part.negative_TC.sum(0)

    def loss(theta: Floats) -> float:
        mean_C, shape = m_C * np.exp(theta[0] + theta[1] * part.log_popularity_C), np.exp(theta[2])
        likelihood = stats.nbinom.logpmf(n_C, shape, shape / (shape + mean_C)).sum()
        return float(-likelihood + 0.5 * theta[1] ** 2 + 0.05 * theta[2] ** 2)

    best = optimize.minimize(loss, [0.0, 0.0, 0.0], method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-9}).x
    assert [found.intercept, found.slope, np.log(found.shape)] == pytest.approx(best.tolist(), abs=0.02)
    prior_C = np.exp(found.intercept + found.slope * part.log_popularity_C)
    expected_C = (n_C + found.shape) / (m_C + found.shape / prior_C)
    np.testing.assert_allclose(np.exp(found.log_mean_C), expected_C)


def test_the_coefficients_are_those_of_greatest_posterior() -> None:
    """Two users, three items, scores and popularity only: by a search over a grid."""
    score_TC = np.array([[1.0, 0.0, -1.0], [0.5, 0.5, -1.0]])
    positive_TC = np.array([[False, True, False], [True, False, True]])
    log_popularity_C = np.array([0.0, 1.0, -1.0])
    index = np.arange(2, dtype=np.int32), np.arange(3, dtype=np.int32)
    part = Slice(*index, score_TC, positive_TC, ~positive_TC, log_popularity_C)
    found = calibrate(part, np.random.default_rng(0), appeal=False)
    spread = np.array([(score_TC - score_TC.mean(1, keepdims=True)).std(), log_popularity_C.std()])

    def loss(alpha: float, beta: float) -> float:
        logit_TC = alpha * score_TC + beta * log_popularity_C
        log_p_TC = logit_TC - np.log(np.exp(logit_TC).sum(1, keepdims=True))
        weight_TC = positive_TC / positive_TC.sum(1, keepdims=True)
        prior = ((alpha - 1) * spread[0] / max(spread[0], 1)) ** 2 + (beta * spread[1]) ** 2
        return float(-(weight_TC * log_p_TC).sum() + prior / 2)

    grid = np.linspace(-1, 2, 121)
    least = min((loss(a, b), a, b) for a in grid[grid >= 0] for b in grid)
    assert (found.scale, found.popularity) == pytest.approx(least[1:], abs=0.03)


def test_a_calibration_of_nothing_leaves_the_order() -> None:
    """One user: the prior holds the scores as they are, more or less."""
    part = drawn(30, np.random.default_rng(5)).some(np.arange(1))
    learnt = calibrate(part, np.random.default_rng(0))
    assert np.isfinite(learnt(part.score_TC)).all()
    assert learnt.scale > 0
