"""Gains, regrets and the choice: by hand, against an independent way, and what the rule may never do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unveil.evaluation.metrics import NDCG
from unveil.evaluation.statistics import holm
from unveil.studies.decision import Floats, chance, cross_fitted, decide, gains, mean_over_strata, robust_of
from unveil.studies.results import verdict


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
    assert robust_of(three(), ("naive", "steady", "bold")) == "bold"


def test_equal_regrets_are_decided_by_the_mean() -> None:
    value = {"naive": draws((0.0,), (0.0,), (0.0,))}
    value |= {"one": draws((0.75,), (0.25,), (0.5,)), "other": draws((0.5,), (0.5,), (0.75,))}
    assert [each.largest_regret for each in gains(value, tuple(value)).values()] == [0.25, 0.25, 0.75]
    assert robust_of(value, tuple(value)) == "other"


def test_the_robust_choice_is_taken_where_it_is_sure() -> None:
    found = decide(three(), ("naive", "steady", "bold"))
    assert found.robust == found.best == "bold"
    assert found.test is not None
    assert found.test.difference == pytest.approx(0.07)
    assert found.chosen == ("bold" if found.test.p < 0.05 else "naive")


def test_without_anything_sure_naive_is_advised() -> None:
    value = three() | {"bold": draws((0.2, 0.7), (0.1, 0.6)), "steady": draws((0.3, 0.52), (0.2, 0.42))}
    assert decide(value, ("naive", "steady", "bold")).chosen == "naive"


def test_a_sure_choice_is_advised() -> None:
    value = {"naive": draws((0.40, 0.40), (0.30, 0.30)), "good": draws((0.50, 0.51), (0.41, 0.40))}
    found = decide(value, ("naive", "good"))
    assert (found.chosen, found.test) == ("good", mean_over_strata(value["good"] - value["naive"]))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), worlds=st.sampled_from([1, 3]))
def test_what_is_chosen_is_sure_and_naive_never_gains(seed: int, worlds: int) -> None:
    rng = np.random.default_rng(seed)
    arms = ("naive", "a", "b", "c")
    value = {arm: rng.normal(place / 10, 0.1, size=(3, worlds, 2)) for place, arm in enumerate(arms)}
    found = decide(value, arms)
    assert found.gains["naive"].mean.difference == 0
    assert min(min(each.regret) for each in found.gains.values()) == pytest.approx(0)
    assert found.test is not None
    assert found.chosen == (found.robust if verdict(found.test) == "above" else "naive")
    assert found.gains[found.robust].largest_regret == min(each.largest_regret for each in found.gains.values())


def test_a_draw_is_measured_under_the_choice_of_the_other_half() -> None:
    """The first and third replicates choose `lucky`, which loses on the second; the second chooses `other`."""
    value = {
        "naive": draws((0.4, 0.4, 0.4)),
        "lucky": draws((0.9, 0.3, 0.8)),
        "other": draws((0.5, 0.6, 0.1)),
    }
    found = cross_fitted(value, tuple(value))
    assert found == mean_over_strata(draws((0.5 - 0.4, 0.3 - 0.4, 0.1 - 0.4)))
    assert cross_fitted({arm: each[:, :, :1] for arm, each in value.items()}, tuple(value)) is None


def test_worlds_are_the_halves_where_there_are_several() -> None:
    rng = np.random.default_rng(3)
    value = {arm: rng.normal(0, 1, (2, 4, 3)) for arm in ("naive", "a", "b")}
    gain_ZWR = np.zeros((2, 4, 3))
    for world in range(4):
        other = [w for w in range(4) if w % 2 != world % 2]
        mean = {arm: each[:, other].mean((1, 2)) for arm, each in value.items()}
        best = np.max(list(mean.values()), axis=0)
        chosen = min(value, key=lambda arm: (best - mean[arm]).max())
        gain_ZWR[:, world] = value[chosen][:, world] - value["naive"][:, world]
    assert cross_fitted(value, tuple(value)) == mean_over_strata(gain_ZWR)


def rejected(seed: int, shape: tuple[int, int, int], arms: int, effect: float, trials: int) -> tuple[float, float]:
    """How often the one choice is advised, and how often Holm over all arms would find any; the first arm is better."""
    rng, names = np.random.default_rng(seed), ("naive", *map(str, range(arms)))
    ours = theirs = 0
    for _ in range(trials):
        value = {name: rng.normal(effect * (name == "0"), 1, shape) for name in names}
        test = cross_fitted(value, names)
        ours += test is not None and verdict(test) == "above"
        tests = [mean_over_strata(value[name] - value["naive"]) for name in names[1:]]
        p = holm(np.array([each.p for each in tests]))
        theirs += any(p[n] < 0.05 and each.difference > 0 for n, each in enumerate(tests))
    return ours / trials, theirs / trials


@pytest.mark.parametrize(("shape", "arms"), [((4, 1, 2), 8), ((4, 1, 3), 30), ((9, 6, 1), 8)])
def test_under_no_difference_few_are_advised(shape: tuple[int, int, int], arms: int) -> None:
    """At most 5%: 600 trials of a rate of 5% exceed 7% once in a hundred."""
    assert rejected(0, shape, arms, 0.0, 600)[0] < 0.05


@pytest.mark.parametrize(("shape", "effect"), [((4, 1, 3), 1.5), ((9, 6, 1), 0.7)])
def test_power_is_higher_than_with_holm_over_the_arms(shape: tuple[int, int, int], effect: float) -> None:
    ours, theirs = rejected(1, shape, 30, effect, 200)
    assert ours > 0.3
    assert ours > theirs + 0.1


def test_chance_is_the_mean_of_random_rankings() -> None:
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 41, 200_000)
    assert chance(NDCG(), 40, 10) == pytest.approx(NDCG()(ranks, 10).mean(), abs=0.002)
    assert chance(NDCG(), 4, 10) == pytest.approx(np.mean([1 / np.log2(1 + r) for r in (1, 2, 3, 4)]))
