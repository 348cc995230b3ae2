"""Shares, pairs and figures, against cases worked by hand and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.propensity.impressions.seen import ITEMS, impressions
from unveil.propensity.impressions.judge import auc, judged
from unveil.propensity.impressions.pairs import Draw, Pairs
from unveil.propensity.impressions.shares import recent, share
from unveil.propensity.impressions.shown import Shown


def test_recent_shares_look_back_and_fade() -> None:
    count_DV = np.array([[4.0, 0.0], [0.0, 2.0], [8.0, 8.0]])
    shares = recent(count_DV, half_life=1.0)
    np.testing.assert_allclose(shares[1], share(np.array([4.0, 0.0])))
    np.testing.assert_allclose(shares[2], share(np.array([2.0, 2.0])))
    np.testing.assert_allclose(shares[0], shares[1])
    np.testing.assert_allclose(shares.sum(1), 1)


def test_a_drawn_pair_stands_for_as_many_as_its_rate_says() -> None:
    shown = Shown.of(impressions())
    draw = Draw.mixed(8, shown.counts(shown.n_days).sum(0))
    pairs = draw.pairs(shown, np.random.default_rng(0))
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
    quality = judged(np.array([0.5, 0.25, 0.25]), pairs_of([True, False, True], [1, 4, 1]))
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
