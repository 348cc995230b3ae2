"""How probabilities are judged and calibrated, and the pairs that this is done on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit

from tests.propensity.seen import ITEMS, impressions
from unveil.data.indexing import Vocabulary
from unveil.propensity import time_of_day_fit
from unveil.propensity.impression_pairs import Impressions, Pairs, auc, quality_of, recent_share, share, with_negatives
from unveil.propensity.time_of_day import ExposureModel
from unveil.propensity.time_of_day_fit import IDENTITY, calibrate


def test_recent_shares_look_back_and_fade() -> None:
    count_DV = np.array([[4.0, 0.0], [0.0, 2.0], [8.0, 8.0]])
    shares = recent_share(count_DV, half_life=1.0)
    np.testing.assert_allclose(shares[1], share(np.array([4.0, 0.0])))
    np.testing.assert_allclose(shares[2], share(np.array([2.0, 2.0])))
    np.testing.assert_allclose(shares[0], shares[1])
    np.testing.assert_allclose(shares.sum(1), 1)


def test_a_drawn_pair_stands_for_as_many_as_its_rate_says() -> None:
    shown = Impressions.of(impressions())
    q_V = 0.5 / ITEMS + 0.5 * share(shown.counts().sum(0))
    pairs = with_negatives(shown, 8, q_V, np.random.default_rng(0))
    drawn = ~pairs.shown_M
    each_V = np.bincount(pairs.item_M[drawn], weights=pairs.weight_M[drawn], minlength=ITEMS)
    others_V = len(shown) - np.bincount(shown.item_N, minlength=ITEMS)
    np.testing.assert_allclose(each_V, others_V, rtol=0.1)
    assert pairs.shown_M.sum() == len(shown)
    assert (pairs.weight_M[pairs.shown_M] == 1).all()


def pairs_of(shown: list[bool], weight: list[float]) -> Pairs:
    zero = np.zeros(len(shown), np.int64)
    return Pairs(zero, zero, zero, zero, np.array(shown), 1 / np.array(weight))


def test_figures_by_hand() -> None:
    quality = quality_of(np.array([0.5, 0.25, 0.25]), pairs_of([True, False, True], [1, 4, 1]))
    assert quality.log_loss == pytest.approx((-np.log(0.5) - 4 * np.log(0.75) - np.log(0.25)) / 2)
    assert quality.mass == pytest.approx((0.5 + 4 * 0.25 + 0.25) / 2)
    # Two bins: the pair at 0.5 promised 0.5 and had 1; the others promised 1.25 and had 1.
    assert quality.ece == pytest.approx((0.5 + 0.25) / 2)
    assert quality.auc == pytest.approx((4 * 1 + 4 * 0.5) / (2 * 4))
    assert sum(quality.calibration.impressions) == pytest.approx(1.75)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans(), st.integers(1, 3)), min_size=2, max_size=12).filter(
        lambda rows: len({row[1] for row in rows}) == 2
    )
)
def test_the_area_is_that_of_all_pairs_laid_out(rows: list[tuple[int, bool, int]]) -> None:
    theta, shown, weight = (np.array(column) for column in zip(*rows, strict=True))
    laid = [(t, s) for t, s, w in rows for _ in range(w)]
    wins = [
        1.0 if high > low else 0.5 if high == low else 0.0
        for high, was in laid
        for low, other in laid
        if was and not other
    ]
    assert auc(theta.astype(float), shown, weight.astype(float)) == pytest.approx(np.mean(wins))


def promising(*theta: float) -> ExposureModel:
    """θ of each item, whoever and whenever."""
    psi_DV, n = logit(np.array([theta])).astype(np.float32), len(theta)
    P_UK, Q_VK, W_HK = (np.zeros((rows, 1), np.float32) for rows in (1, n, 24))
    users, items = Vocabulary(["u"]), Vocabulary(f"i{nth}" for nth in range(n))
    return ExposureModel(users, items, P_UK, Q_VK, W_HK, psi_DV, np.zeros_like(psi_DV), (0.0, 1.0, 0.0), IDENTITY, 0)


def calibration_pairs(*rows: tuple[int, bool, float]) -> Pairs:
    """(item, shown or not, how many it stands for)."""
    item_M, shown_M, weight_M = (np.array(column) for column in zip(*rows, strict=True))
    zero_M = np.zeros(len(rows), np.int64)
    return Pairs(zero_M, item_M, zero_M, zero_M, shown_M, 1 / weight_M)


def test_one_bin_by_hand() -> None:
    # 5 pairs are promised ¼ each, 3 pairs ½: 2.75 of 8; 2 were shown, and half of one more is added.
    pairs = calibration_pairs((0, True, 1), (0, False, 4), (1, True, 1), (1, False, 2))
    found_B2 = calibrate(promising(0.25, 0.5), pairs).curve_B2
    np.testing.assert_allclose(found_B2, [[logit(2.75 / 8), logit(2.5 / 9)]], rtol=1e-5)


@pytest.mark.parametrize(
    ("shown", "rate"),
    [
        (1, [1.5 / 6, 1.5 / 4]),
        (3, [(3.5 / 6 * 5 + 1.5 / 4 * 3) / 8] * 2),  # the first would hold more than the second: they are pooled
    ],
)
def test_two_bins_by_hand(monkeypatch: pytest.MonkeyPatch, shown: int, rate: list[float]) -> None:
    monkeypatch.setattr(time_of_day_fit, "_EACH_BIN", 1)
    monkeypatch.setattr(time_of_day_fit, "_MOST_BINS", 2)
    pairs = calibration_pairs(*[(0, True, 1.0)] * shown, (0, False, 5.0 - shown), (1, True, 1), (1, False, 2))
    found_B2 = calibrate(promising(0.25, 0.5), pairs).curve_B2
    np.testing.assert_allclose(found_B2, np.stack([logit([0.25, 0.5]), logit(rate)], 1), atol=1e-6)
