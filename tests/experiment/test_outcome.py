"""Means, intervals, differences and the gap, on figures made up by hand."""

import numpy as np
import pytest
from scipy import stats

from tests.experiment.demo.small import made_up, means
from unveil.experiment.outcome import STANDARD, TRUE

ONE = {
    "popularity": ([0.0, 0.2], [0.5, 0.5]),
    "naive": ([0.1, 0.3], [0.9, 0.7]),
    "itps": ([0.3, 0.3], [0.2, 0.4]),
    "ideal": ([0.6, 0.6], [0.1, 0.1]),
}


def test_figures_of_one_trial_are_means_over_its_users() -> None:
    outcome = made_up(ONE)
    assert outcome.units == "2 users"
    assert outcome.estimate("naive").mean == pytest.approx(0.2)
    assert outcome.estimate("naive", STANDARD).mean == pytest.approx(0.8)
    assert outcome.estimate("itps").n == 2
    found = outcome.table.filter(estimator="itps", evaluation=TRUE, protocol="full", metric="NDCG", k=10)
    assert found["mean"].to_list() == [pytest.approx(0.3)]


def test_the_gap_closed_by_hand() -> None:
    outcome = made_up(ONE)
    assert outcome.gap_closed("itps") == pytest.approx((0.3 - 0.2) / (0.6 - 0.2))
    assert outcome.gap_closed("naive") == 0
    assert outcome.gap_closed("ideal") == 1


def test_without_a_gap_nothing_closes_it() -> None:
    assert made_up(means(0.1, naive=0.5, itps=0.6, ideal=0.4)).gap_closed("itps") is None


def test_an_arm_below_naive_has_a_negative_share() -> None:
    gap = made_up(means(0.1, naive=0.3, itps=0.2, ideal=0.5)).gap_closed("itps")
    assert gap == pytest.approx(-0.5)


def test_the_trained_arms_are_ranked_by_either_evaluation() -> None:
    outcome = made_up(ONE)
    assert outcome.arms == ["popularity", "naive", "itps", "ideal"]
    assert outcome.ranking(TRUE) == ["ideal", "itps", "naive"]
    assert outcome.ranking(STANDARD) == ["naive", "itps", "ideal"]


def test_differences_are_paired_over_users_and_corrected() -> None:
    arms = means(0.1, naive=0.3, itps=0.31, ideal=0.6)
    found = made_up(arms).differences
    by_scipy = {name: stats.ttest_rel(arms[name][0], arms["naive"][0]).pvalue for name in ("itps", "ideal")}
    assert list(found) == ["itps", "ideal"]
    assert found["itps"].difference == pytest.approx(np.mean(arms["itps"][0]) - np.mean(arms["naive"][0]))
    assert found["ideal"].p == pytest.approx(2 * by_scipy["ideal"])
    assert found["itps"].p == pytest.approx(max(by_scipy["itps"], 2 * by_scipy["ideal"]))


def test_replicates_are_the_units_once_there_are_several() -> None:
    naive = (0.2, 0.4, 0.3)
    outcome = made_up(*(means(0.1, naive=each, itps=each + 0.1, ideal=0.6) for each in naive))
    found, value = outcome.estimate("naive"), [np.mean(means(0.1, each, 0, 0)["naive"][0]) for each in naive]
    low, high = stats.t.interval(0.95, 2, np.mean(value), stats.sem(value))
    assert outcome.units == "3 replicates"
    assert found.n == 3
    assert found.mean == pytest.approx(np.mean(value))
    assert [found.low, found.high] == [pytest.approx(low), pytest.approx(high)]
    assert outcome.differences["itps"].n == 3
    # The difference is the same in each replicate, far surer than either mean.
    assert outcome.differences["itps"].high - outcome.differences["itps"].low < (high - low) / 100
