"""Gains, regrets and the choice: by hand, against an independent way, and what the rule may never do."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unveil.studies.decision import Floats, decide, gain_left_out, gains, mean_over_strata, robust_of


def draws(*scenarios: tuple[float, ...]) -> Floats:
    """value_ZWR of one world: the draws of each scenario."""
    return np.array(scenarios)[:, None, :]


def test_the_mean_over_scenarios_has_the_variance_of_their_draws() -> None:
    value_ZWR = draws((0.1, 0.3), (0.5, 0.9))
    found = mean_over_strata(value_ZWR)
    assert found.difference == pytest.approx(0.45)
    error = np.sqrt((np.var([0.1, 0.3], ddof=1) + np.var([0.5, 0.9], ddof=1)) / 2 / 4)
    assert found.high - found.difference == pytest.approx(stats.t.ppf(0.975, 2) * error)
    assert found.p == pytest.approx(2 * stats.t.sf(0.45 / error, 2))
    far = mean_over_strata(value_ZWR + np.array([0.0, 9.0])[:, None, None])
    assert far.high - far.low == pytest.approx(found.high - found.low), "scenarios may differ as they like"


def test_with_several_worlds_each_counts_once() -> None:
    value_ZWR = np.arange(12, dtype=float).reshape(2, 3, 2)
    found = mean_over_strata(value_ZWR)
    expected = stats.ttest_1samp(value_ZWR.mean(axis=(0, 2)), 0)
    assert found.n == 3
    assert found.p == pytest.approx(expected.pvalue)


def test_one_draw_says_nothing_sure() -> None:
    found = mean_over_strata(draws((0.5,), (0.6,)))
    assert found.p == 1.0
    assert found.high == float("inf")


def three() -> dict[str, Floats]:
    """In the first scenario the bold arm wins by far, in the second it loses; the steady one wins a little in both."""
    return {
        "naive": draws((0.40, 0.41), (0.30, 0.31)),
        "steady": draws((0.45, 0.46), (0.35, 0.36)),
        "bold": draws((0.60, 0.61), (0.24, 0.25)),
    }


def test_regret_is_against_the_best_of_the_scenario() -> None:
    found = gains(three(), ("naive", "steady", "bold"))
    assert found["bold"].regret == pytest.approx((0.0, 0.11))
    assert found["steady"].regret == pytest.approx((0.15, 0.0))
    assert found["naive"].largest_regret == pytest.approx(0.20)
    assert found["bold"].worst == 1
    assert robust_of(found) == "bold"


def test_the_robust_choice_is_taken_where_it_is_sure() -> None:
    found = decide(three(), ("naive", "steady", "bold"))
    assert (found.chosen, found.why) == ("bold", "robust")
    assert found.best == "bold"
    assert found.left_out == pytest.approx(0.07)


def test_without_anything_sure_naive_is_advised() -> None:
    value = three() | {"bold": draws((0.2, 0.7), (0.1, 0.6)), "steady": draws((0.3, 0.52), (0.2, 0.42))}
    found = decide(value, ("naive", "steady", "bold"))
    assert (found.chosen, found.why) == ("naive", "nothing is sure")


def test_a_higher_mean_is_no_reason_to_be_below_naive_somewhere() -> None:
    value = {
        "naive": draws((0.40, 0.41), (0.40, 0.41)),
        "bold": draws((0.55, 0.56), (0.20, 0.21)),
        "wild": draws((0.80, 0.81), (0.10, 0.11)),
    }
    found = decide(value, ("naive", "bold", "wild"))
    assert found.best == "wild"
    assert found.gains["wild"].significant
    assert found.chosen in ("wild", "naive")
    if found.chosen == "wild":
        assert found.robust == "wild"


def unsure() -> dict[str, Floats]:
    """The loud arm has the higher mean and the least regret, but nothing of it is sure; the quiet one is."""
    return {
        "naive": draws((0.40, 0.40), (0.40, 0.40)),
        "loud": draws((0.10, 0.98), (0.10, 0.98)),
        "quiet": draws((0.50, 0.51), (0.50, 0.51)),
    }


def test_what_is_sure_and_loses_nowhere_is_taken_where_neither_the_robust_nor_the_highest_mean_is_sure() -> None:
    found = decide(unsure(), ("naive", "loud", "quiet"))
    assert found.robust == found.best == "loud"
    assert not found.gains["loud"].significant
    assert (found.chosen, found.why) == ("quiet", "mean")


def test_what_is_sure_on_average_but_loses_somewhere_is_not_taken() -> None:
    value = unsure() | {"quiet": draws((0.62, 0.63), (0.39, 0.40))}
    found = decide(value, ("naive", "loud", "quiet"))
    assert found.gains["quiet"].significant
    assert (found.chosen, found.why) == ("naive", "naive is safer")


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), worlds=st.sampled_from([1, 3]))
def test_what_is_chosen_is_sure_and_naive_never_gains(seed: int, worlds: int) -> None:
    rng = np.random.default_rng(seed)
    arms = ("naive", "a", "b", "c")
    value = {arm: rng.normal(place / 10, 0.1, size=(3, worlds, 2)) for place, arm in enumerate(arms)}
    found = decide(value, arms)
    assert found.gains["naive"].mean.difference == 0
    assert min(min(each.regret) for each in found.gains.values()) == pytest.approx(0)
    assert found.chosen == "naive" or found.gains[found.chosen].significant
    least = [found.gains[arm].largest_regret for arm in sorted(arms, key=lambda a: found.gains[a].largest_regret)]
    assert all(one <= other for one, other in pairwise(least))
    assert found.gains[found.robust].largest_regret == least[0]


def test_draws_left_out_are_not_looked_at() -> None:
    """Only the first replicate makes `lucky` look good: left out, naive is chosen; left in, the others pay for it."""
    value = {"naive": draws((0.4, 0.4, 0.4)), "lucky": draws((0.9, 0.3, 0.3))}
    expected = np.mean([0.0, 0.3 - 0.4, 0.3 - 0.4])
    assert gain_left_out(value, ("naive", "lucky")) == pytest.approx(expected)
    assert gain_left_out({arm: each[:, :, :1] for arm, each in value.items()}, ("naive", "lucky")) is None
