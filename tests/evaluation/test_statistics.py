import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_rel

from unveil.evaluation import statistics
from unveil.evaluation.statistics import bootstrap, holm, paired, ratio_interval


def test_holm_by_hand() -> None:
    # in order .005 ×4, .01 ×3, .03 ×2, .04 ×1 = .02, .03, .06, .04 → never falling: .02, .03, .06, .06
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.6, 0.9])).tolist() == [1, 1]
    assert holm(np.zeros(0)).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_the_step_down_procedure_rejects(p: list[float]) -> None:
    alpha, rejected = 0.05, set[int]()
    for step, h in enumerate(sorted(range(len(p)), key=lambda h: p[h])):
        if p[h] * (len(p) - step) >= alpha:
            break
        rejected.add(h)
    corrected = holm(np.array(p))
    assert {h for h in range(len(p)) if corrected[h] < alpha} == rejected
    assert (corrected >= np.array(p)).all()


def test_holm_keeps_false_claims_rare() -> None:
    p_RH = np.random.default_rng(0).random((4000, 20))
    claims = np.mean([(holm(p_H) < 0.05).any() for p_H in p_RH])
    assert claims == pytest.approx(0.05, abs=0.01)
    assert (p_RH < 0.05).any(axis=1).mean() > 0.6  # what would happen without


def test_paired_by_hand() -> None:
    result = paired(np.array([3.0, 5.0, 4.0]), np.array([1.0, 4.0, 4.0]))  # differences 2, 1, 0: mean 1, deviation 1
    assert result.difference == 1
    assert result.effect == pytest.approx(1)
    assert (result.low, result.high) == pytest.approx((1 - 4.302653 / 3**0.5, 1 + 4.302653 / 3**0.5))
    assert result.p == pytest.approx(1 - 0.6**0.5)  # t = √3 on 2 degrees of freedom
    assert result.n == 3


@given(seed=st.integers(0, 10_000))
def test_the_t_test_and_its_interval_are_the_usual_ones(seed: int) -> None:
    a, b = np.random.default_rng(seed).random((2, 15))
    result, usual = paired(a, b), ttest_rel(a, b)
    interval = ttest_1samp(a - b, 0).confidence_interval()
    assert (result.p, result.low, result.high) == pytest.approx((usual.pvalue, interval.low, interval.high))


def test_nothing_changed_is_no_evidence_and_a_swap_changes_the_sign_only() -> None:
    a, b = np.random.default_rng(1).random((2, 40))
    same = paired(a, a)
    assert (same.p, same.difference, same.effect) == (1, 0, 0)
    there, back = paired(a, b), paired(b, a)
    assert (there.difference, there.effect, there.p) == pytest.approx((-back.difference, -back.effect, back.p))


def test_tests_find_a_difference_and_agree_on_none() -> None:
    rng = np.random.default_rng(2)
    base = rng.random(300)
    assert paired(base + 0.1 + 0.1 * rng.random(300), base).p < 0.001
    p = [paired(*rng.random((2, 50))).p for _ in range(200)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.04)


def test_the_same_step_for_every_user_is_certain() -> None:
    result = paired(np.full(5, 0.5), np.full(5, 0.25))
    assert (result.p, result.low, result.high, result.effect) == (0, 0.25, 0.25, np.inf)


def test_one_user_proves_nothing() -> None:
    result = paired(np.array([1.0]), np.array([0.0]))
    assert result.p == 1
    assert result.low == -np.inf


def test_bootstrap_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    value_RUM = rng.binomial(1, 0.3, (300, 200, 1)).astype(float)
    intervals = [bootstrap(value_UM, rng, resamples=400) for value_UM in value_RUM]
    covered = np.mean([low[0] <= 0.3 <= high[0] for low, high in intervals])
    assert covered == pytest.approx(0.95, abs=0.035)


def test_bootstrap_agrees_with_the_normal_interval_of_many_users() -> None:
    rng = np.random.default_rng(4)
    value_UM = rng.random((3000, 2)) * [1, 5]
    low_M, high_M = bootstrap(value_UM, rng, resamples=4000)
    half_M = 1.96 * value_UM.std(axis=0) / 3000**0.5
    assert high_M - low_M == pytest.approx(2 * half_M, rel=0.05)
    assert (low_M + high_M) / 2 == pytest.approx(value_UM.mean(axis=0), rel=0.005)


def test_bootstrap_takes_whole_users_in_bounded_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "CELLS", 7 * 40)
    value_U = np.random.default_rng(5).random(40)
    low_M, high_M = bootstrap(np.stack([value_U, 2 * value_U], axis=1), np.random.default_rng(0), resamples=50)
    assert (low_M[1], high_M[1]) == pytest.approx((2 * low_M[0], 2 * high_M[0]))


def test_a_bound_of_a_ratio_is_where_the_paired_test_turns() -> None:
    rng = np.random.default_rng(3)
    b_U = 2 + rng.normal(size=9)
    a_U = 0.4 * b_U + rng.normal(scale=0.3, size=9)
    found = ratio_interval(a_U, b_U)
    assert found is not None
    for bound in found:
        assert paired(a_U, bound * b_U).p == pytest.approx(0.05)
    assert paired(a_U, np.mean(found) * b_U).p > 0.05


def test_the_interval_of_a_ratio_holds_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(2000):
        b_U = rng.normal(1.0, 0.4, 5)
        a_U = 0.3 * b_U + rng.normal(0.2, 0.3, 5)
        found = ratio_interval(a_U, b_U)
        held += found is None or found[0] <= 0.5 <= found[1]
    assert held / 2000 == pytest.approx(0.95, abs=0.015)  # three standard errors


def test_a_ratio_to_what_may_be_nothing_has_no_bounds() -> None:
    assert ratio_interval(np.array([1.0, 2.0, 3.0]), np.array([-1.0, 1.0, 0.5])) is None
    assert ratio_interval(np.array([1.0]), np.array([2.0])) is None
