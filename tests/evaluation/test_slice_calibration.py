"""Calibration on a slice: planted effects are found, likelihoods are those of their equations, noise gains nothing."""

from math import lgamma

import numpy as np
import pytest
from scipy import optimize, stats

from tests.data.ragged import sequences_of
from unveil.data.indexing import Index
from unveil.evaluation.slice_calibration import (
    RECIPES,
    Appeal,
    Floats,
    Slice,
    calibrate,
    cross_fit,
    gain_curve,
    item_features,
    spectral_features,
    vector_features,
    weighted_counts,
)

N_ITEMS = 60


def indices(users: int, items: int) -> tuple[Index, Index]:
    return np.arange(users, dtype=np.int32), np.arange(items, dtype=np.int32)


def drawn(
    users: int, rng: np.random.Generator, *, popularity: float = 0.0, appeal: float = 0.0, score: float = 1.0
) -> Slice:
    """Users who like each item with σ(score · f + popularity · x + appeal · a − 2); x is standard normal."""
    feature_VP = np.sort(rng.normal(size=(N_ITEMS, 1)), axis=0)
    score_TC = rng.normal(size=(users, N_ITEMS))
    appeal_C = rng.normal(size=N_ITEMS)
    logit_TC = score * score_TC + popularity * feature_VP[:, 0] + appeal * appeal_C - 2
    positive_TC = rng.random((users, N_ITEMS)) < 1 / (1 + np.exp(-logit_TC))
    whole = Slice(*indices(users, N_ITEMS), score_TC, positive_TC, ~positive_TC, feature_VP)
    return whole.some(np.asarray(positive_TC.any(1) & ~positive_TC.all(1)))


@pytest.mark.parametrize("popularity", [-1.0, 1.0])
def test_popularity_is_added_or_taken_away(popularity: float) -> None:
    part = drawn(400, np.random.default_rng(1), popularity=popularity)
    learnt = calibrate(part, np.random.default_rng(0), "popularity")
    assert learnt.popularity[0] / learnt.scale == pytest.approx(popularity, abs=0.2)


def test_appeal_is_learnt_and_helps_other_users() -> None:
    part = drawn(200, np.random.default_rng(2), appeal=1.5)
    found = cross_fit([part], np.random.default_rng(0))
    assert found.names[found.best] == (0, "appeal")
    assert found.is_better
    assert found.gain.difference > 0.1
    plain = cross_fit([part], np.random.default_rng(0), recipes=("as it is", "popularity"))
    assert found.gain.difference > plain.gain.difference + 0.05


def test_the_same_list_for_all_is_chosen_where_scores_say_nothing() -> None:
    part = drawn(200, np.random.default_rng(4), appeal=2.0, score=0.0)
    found = cross_fit([part], np.random.default_rng(0))
    learnt = calibrate(part, np.random.default_rng(0), "same for all")
    value_N = found.value_NT.mean(1)
    assert value_N[found.names.index((0, "same for all"))] > value_N[0] + 0.1
    assert np.std(learnt.scale * part.score_TC) == pytest.approx(1e-3 * learnt.offset_V.std())


def test_the_better_of_two_runs_is_chosen() -> None:
    good = drawn(150, np.random.default_rng(6))
    noise = np.random.default_rng(7).normal(size=good.score_TC.shape)
    bad = Slice(good.user_T, good.item_C, noise, good.positive_TC, good.negative_TC, good.feature_VP)
    found = cross_fit([bad, good], np.random.default_rng(0), recipes=("as it is",))
    assert found.names == [(0, "as it is"), (1, "as it is")]
    assert found.best == 1
    assert found.is_better
    np.testing.assert_allclose(found.value_NT, [bad.metric("NDCG@10"), good.metric("NDCG@10")])


def test_noise_is_not_better() -> None:
    """Where the scores are all there is, calibration is called better no more often than chance allows."""
    called = sum(
        cross_fit([drawn(40, np.random.default_rng(seed))], np.random.default_rng(seed)).is_better for seed in range(20)
    )
    assert called <= 2


def test_the_gain_is_that_of_choices_made_on_other_folds() -> None:
    """Brute force over the folds."""
    found = cross_fit([drawn(50, np.random.default_rng(8))], np.random.default_rng(0))
    chosen_T = np.zeros(len(found.fold_T))
    for user, fold in enumerate(found.fold_T):
        others = [value_T[found.fold_T != fold].mean() for value_T in found.value_NT]
        chosen_T[user] = found.value_NT[int(np.argmax(others)), user]
    assert found.gain.difference == pytest.approx((chosen_T - found.value_NT[0]).mean())


def test_larger_slices_gain_more() -> None:
    part = drawn(300, np.random.default_rng(9), appeal=1.5)
    small, large = gain_curve([part], np.random.default_rng(0), "NDCG@10", [10, 200], draws=3)
    assert (small.users, large.users) == (10, 200)
    assert large.after - large.before > small.after - small.before
    assert large.recommended == 1.0
    assert large.applied == large.after
    assert small.harmed == large.harmed == 0.0


def test_the_prior_of_appeal_is_a_negative_binomial_regression() -> None:
    """Against scipy's negative binomial, written apart."""
    part = drawn(50, np.random.default_rng(3), popularity=0.5, appeal=0.5)
    found = Appeal.of(part)
    n_C, m_C = weighted_counts(part)
    x_C = part.feature_VP[:, 0]

    def loss(theta: Floats) -> float:
        mean_C, shape = m_C * np.exp(theta[0] + theta[1] * x_C), np.exp(theta[2])
        likelihood = stats.nbinom.logpmf(0, shape, shape / (shape + mean_C)).sum()  # of counts of 0
        counted = (_log_rising(shape, n) + n * np.log(m / (m + shape)) for n, m in zip(n_C, mean_C, strict=True))
        return float(-likelihood - sum(counted) + 0.5 * theta[1] ** 2 + 0.05 * theta[2] ** 2)

    best = optimize.minimize(loss, [0.0, 0.0, 0.0], method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-9}).x
    assert [found.intercept, found.slope_P[0], np.log(found.shape)] == pytest.approx(best.tolist(), abs=0.02)
    prior_C = np.exp(found.intercept + found.slope_P[0] * x_C)
    expected_C = (n_C + found.shape) / (m_C + found.shape / prior_C)
    np.testing.assert_allclose(np.exp(found.log_mean_V), expected_C)


def _log_rising(shape: float, n: float) -> float:
    """log Γ(n + shape) − log Γ(shape)."""
    return lgamma(n + shape) - lgamma(shape)


def test_counts_are_weighted_by_users() -> None:
    """Two users by hand: n + 5 = 6 and 7."""
    positive_TC = np.array([[True, False, False], [True, True, False]])
    part = Slice(*indices(2, 3), np.zeros((2, 3)), positive_TC, ~positive_TC, np.zeros((3, 1)))
    n_C, m_C = weighted_counts(part)
    unit = (1 / 36 + 2 / 49) / (1 / 6 + 2 / 7)
    np.testing.assert_allclose(n_C * unit, [1 / 6 + 1 / 7, 1 / 7, 0])
    np.testing.assert_allclose(m_C * unit, [1 / 6 + 1 / 7] * 3)


def test_the_coefficients_are_those_of_greatest_posterior() -> None:
    """Two users, three items, scores and popularity only: by a search over a grid."""
    score_TC = np.array([[1.0, 0.0, -1.0], [0.5, 0.5, -1.0]])
    positive_TC = np.array([[False, True, False], [True, False, True]])
    x_C = np.array([0.0, 1.0, -1.0])
    part = Slice(*indices(2, 3), score_TC, positive_TC, ~positive_TC, x_C[:, None])
    found = calibrate(part, np.random.default_rng(0), "popularity")
    spread = np.array([(score_TC - score_TC.mean(1, keepdims=True)).std(), x_C.std()])

    def loss(alpha: float, beta: float) -> float:
        logit_TC = alpha * score_TC + beta * x_C
        log_p_TC = logit_TC - np.log(np.exp(logit_TC).sum(1, keepdims=True))
        weight_TC = positive_TC / positive_TC.sum(1, keepdims=True)
        prior = ((alpha - 1) * spread[0] / max(spread[0], 1)) ** 2 + (beta * spread[1]) ** 2
        return float(-(weight_TC * log_p_TC).sum() + prior / 2)

    grid = np.linspace(-1, 2, 121)
    least = min((loss(a, b), a, b) for a in grid[grid >= 0] for b in grid)
    assert (found.scale, found.popularity[0]) == pytest.approx(least[1:], abs=0.03)


def test_sampled_negatives_give_nearly_the_same_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    part = drawn(400, np.random.default_rng(10), popularity=0.7)
    whole = calibrate(part, np.random.default_rng(0), "popularity")
    monkeypatch.setattr("unveil.evaluation.slice_calibration._CELLS", 400 * 20)
    sampled = calibrate(part, np.random.default_rng(0), "popularity")
    assert sampled.scale != whole.scale
    assert sampled.scale == pytest.approx(whole.scale, rel=0.1)
    assert sampled.popularity[0] == pytest.approx(whole.popularity[0], rel=0.1)


@pytest.mark.parametrize("recipe", RECIPES)
def test_one_user_is_enough_to_stay_finite(recipe: str) -> None:
    part = drawn(30, np.random.default_rng(5)).some(np.arange(1))
    learnt = calibrate(part, np.random.default_rng(0), recipe)
    assert np.isfinite(learnt(part.score_TC, part.item_C)).all()
    assert np.isfinite(learnt.shift_V).all()
    order = np.argsort(-(part.score_TC[0] + learnt.shift_V[part.item_C]))
    if recipe != "same for all":
        assert (order == np.argsort(-learnt(part.score_TC, part.item_C)[0])).all()


def test_features_of_items_by_hand() -> None:
    """Users of 1 and 3 events: weights 6^-1.5 and 8^-1.5."""
    feature_VP = item_features(sequences_of([[0], [0, 1, 1]], 3))
    count_V = np.array([2, 2, 0])
    balanced_V = np.array([6**-1.5 + 8**-1.5, 2 * 8**-1.5, 0])
    for column_V, expected_V in zip(feature_VP.T, (count_V, balanced_V), strict=True):
        log_V = np.log(expected_V + 0.01 * expected_V.mean())
        np.testing.assert_allclose(column_V, (log_V - log_V.mean()) / log_V.std())


def test_similar_items_share_their_appeal() -> None:
    """Appeal is a function of the vectors, and most items have few positives: vectors make better guesses."""
    rng = np.random.default_rng(11)
    vector_VD = rng.normal(size=(N_ITEMS, 2))
    positive_TC = rng.random((12, N_ITEMS)) < 1 / (1 + np.exp(2 - 2 * vector_VD[:, 0]))
    feature_VP, vector_VD = rng.normal(size=(N_ITEMS, 1)), vector_features(vector_VD)
    score_TC = np.zeros(positive_TC.shape)
    part = Slice(*indices(12, N_ITEMS), score_TC, positive_TC, ~positive_TC, feature_VP, vector_VD)
    found = {
        similar: np.corrcoef(Appeal.of(part, similar=similar).log_mean_V, vector_VD[:, 0])[0, 1]
        for similar in (False, True)
    }
    assert found[True] > found[False] + 0.1


def test_vectors_count_by_direction_alone() -> None:
    vector_VD = np.random.default_rng(0).normal(size=(N_ITEMS, 3))
    feature_VD = vector_features(vector_VD)
    np.testing.assert_allclose(vector_features(vector_VD * np.arange(1, N_ITEMS + 1)[:, None]), feature_VD)
    np.testing.assert_allclose(feature_VD.var(0), 1 / 3)


def test_spectral_features_by_a_full_decomposition() -> None:
    """Rows that are there twice count once; the spaces agree, whatever the signs of the vectors."""
    rng = np.random.default_rng(12)
    user_N, item_N = rng.integers(12, size=90).astype(np.int32), rng.integers(9, size=90).astype(np.int32)
    found_VD = spectral_features(user_N, item_N, 12, 10, width=4)  # the last item in no row
    x_UV = np.zeros((12, 10))
    x_UV[user_N, item_N] = 1
    scaled_UV = x_UV / np.sqrt(np.maximum(np.outer(x_UV.sum(1), x_UV.sum(0)), 1))
    expected_VD = vector_features(np.linalg.svd(scaled_UV)[2][:4].T)
    order = np.argmax(np.abs(found_VD.T @ expected_VD), 0)
    np.testing.assert_allclose(np.abs(found_VD[:, order]), np.abs(expected_VD), atol=1e-6)
    assert np.isfinite(found_VD).all()


def test_items_shown_to_the_same_users_are_near_each_other() -> None:
    """Two groups of users, each shown half of the items."""
    rng = np.random.default_rng(13)
    user_N = rng.integers(60, size=1500).astype(np.int32)
    item_N = (rng.integers(10, size=1500) + 10 * (user_N % 2)).astype(np.int32)
    feature_VD = spectral_features(user_N, item_N, 60, 20, width=2)
    distance_VV = ((feature_VD[:, None] - feature_VD[None]) ** 2).sum(2)
    same_VV = np.equal.outer(np.arange(20) < 10, np.arange(20) < 10)
    assert distance_VV[same_VV].max() < distance_VV[~same_VV].min()
