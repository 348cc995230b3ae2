"""The sampler: its conditionals and priors against their formulas, and posteriors that are known."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.models.tensor_factorization.tiny import Values, from_factors, some
from unveil.models.tensor_factorization import gibbs
from unveil.models.tensor_factorization.gibbs import (
    Evidence,
    Gibbs,
    Grouped,
    SlowSteps,
    draw_rows,
    normal,
    spread_of,
    wishart,
)
from unveil.models.tensor_factorization.task import Bernoulli, Normal, Tuples, auc, mse, split


def log_likelihood(tables: list[Values], tuples: Tuples, precision_N: Values) -> float:
    """−½ Σ_n ω_n (y_n − ψ_n)², tuple by tuple: the last column of each table is its bias."""
    total = 0.0
    for n in range(len(tuples)):
        p, q, w = (table[side[n]] for table, side in zip(tables, tuples.sides, strict=True))
        logit = float(np.dot(p[:-1] * q[:-1], w[:-1]) + p[-1] + q[-1] + w[-1])
        total -= precision_N[n] * (tuples.value_N[n] - logit) ** 2 / 2
    return total


@given(st.integers(0, 2), st.integers(0, 3), st.integers(0, 30))
def test_the_evidence_is_the_curvature_and_the_slope_of_the_likelihood(side: int, width: int, seed: int) -> None:
    """By finite differences, exact for a quadratic: A = −∂²L/∂f², b = ∂L/∂f at f = 0."""
    rng = np.random.default_rng(seed)
    shape, D = (3, 4, 2), width + 1
    tuples, precision_N = some(10, shape, seed), rng.uniform(0.1, 2, 10)
    tables = [rng.standard_normal((size, D)) for size in shape]
    one, two = (tables[other] for other in range(3) if other != side)
    evidence = Grouped.of(tuples, side).evidence((one, two), tuples.value_N, precision_N)
    for row in range(shape[side]):

        def at(f_D: Values, row: int = row) -> float:
            moved = [table.copy() for table in tables]
            moved[side][row] = f_D
            return log_likelihood(moved, tuples, precision_N)

        unit_DD, zero = np.eye(D), at(np.zeros(D))
        up_D, down_D = [at(e) for e in unit_DD], [at(-e) for e in unit_DD]
        np.testing.assert_allclose(evidence.pull_RD[row], (np.array(up_D) - down_D) / 2, atol=1e-9)
        curve_D = -(np.array(up_D) + down_D - 2 * zero)
        np.testing.assert_allclose(np.diag(evidence.precision_RDD[row]), curve_D, atol=1e-9)
        for j, k in combinations(range(D), 2):
            mixed = -(at(unit_DD[j] + unit_DD[k]) - up_D[j] - up_D[k] + zero)
            assert evidence.precision_RDD[row, j, k] == pytest.approx(mixed, abs=1e-9)


def test_one_factor_worked_by_hand() -> None:
    """One user with ψ = f·g·h + f′: y = 2 through g·h = 3 and y = 1 through g·h = −1, precisions 1 and 2."""
    tuples = Tuples(np.array([0, 0]), np.array([0, 1]), np.array([0, 0]), np.array([2.0, 1.0]), (1, 2, 1))
    items, steps = np.array([[3.0, 0.0], [-1.0, 0.0]]), np.array([[1.0, 0.0]])
    evidence = Grouped.of(tuples, 0).evidence((items, steps), tuples.value_N, np.array([1.0, 2.0]))
    assert evidence.precision_RDD[0].tolist() == [[9 + 2, 3 - 2], [3 - 2, 1 + 2]]
    assert evidence.pull_RD[0].tolist() == [6 - 2, 2 + 2]


def test_the_block_size_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tuples, rng = some(300, (20, 30, 5)), np.random.default_rng(0)
    tables = rng.standard_normal((30, 4)), rng.standard_normal((5, 4))
    whole = Grouped.of(tuples, 0).evidence(tables, tuples.value_N, np.ones(300))
    monkeypatch.setattr(gibbs, "_BLOCK", 7)
    parts = Grouped.of(tuples, 0).evidence(tables, tuples.value_N, np.ones(300))
    np.testing.assert_allclose(parts.precision_RDD, whole.precision_RDD)
    np.testing.assert_allclose(parts.pull_RD, whole.pull_RD)


def test_a_row_without_tuples_has_no_evidence() -> None:
    tuples = some(5, (40, 3, 3))
    evidence = Grouped.of(tuples, 0).evidence((np.ones((3, 2)), np.ones((3, 2))), tuples.value_N, np.ones(5))
    absent = np.setdiff1d(np.arange(40), tuples.user_N)
    assert not evidence.precision_RDD[absent].any()
    assert not evidence.pull_RD[absent].any()


def test_draws_have_the_mean_and_the_covariance_they_should() -> None:
    precision_DD, pull_D = np.array([[2.0, 0.6], [0.6, 1.0]]), np.array([1.0, -1.0])
    many = 100_000
    drawn = normal(np.tile(precision_DD, (many, 1, 1)), np.tile(pull_D, (many, 1)), np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(0), np.linalg.solve(precision_DD, pull_D), atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), np.linalg.inv(precision_DD), atol=0.03)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_precision_of_the_chain_inverts_its_correlations(steps: int) -> None:
    apart_TT = np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
    np.testing.assert_allclose(SlowSteps(0.8).precision_times(np.eye(steps)), np.linalg.inv(0.8**apart_TT), atol=1e-9)


def test_all_steps_are_drawn_from_their_joint_posterior() -> None:
    """Against the dense posterior of T × D numbers."""
    T, D, rng = 4, 2, np.random.default_rng(0)
    half = rng.standard_normal((T, D, D))
    evidence = Evidence(half @ half.swapaxes(1, 2), rng.standard_normal((T, D)))
    scale_D, middle_D = np.array([0.5, 3.0]), np.array([1.0, 0.0])
    apart_TT = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    prior = np.kron(np.linalg.inv(0.7**apart_TT), np.diag(scale_D))
    joint = prior.copy()
    for t in range(T):
        joint[t * D : (t + 1) * D, t * D : (t + 1) * D] += evidence.precision_RDD[t]
    pull = evidence.pull_RD.ravel() + prior @ np.tile(middle_D, T)
    drawn = np.array([SlowSteps(0.7).draw_chain(evidence, scale_D, middle_D, rng).ravel() for _ in range(6_000)])
    np.testing.assert_allclose(drawn.mean(0), np.linalg.solve(joint, pull), atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), np.linalg.inv(joint), atol=0.15)


def test_steps_without_evidence_come_and_go_about_one_as_far_as_told() -> None:
    nothing, rng = Evidence(np.zeros((50, 2, 2)), np.zeros((50, 2))), np.random.default_rng(0)
    start = np.tile([1.0, 0.0], (50, 1))
    firm = SlowSteps(persistence=0.5, sway=0.3, firmness=1e6)
    drawn = np.array([firm.draw(start, nothing, rng) for _ in range(300)])
    np.testing.assert_allclose(drawn.mean((0, 1)), [1, 0], atol=0.02)
    np.testing.assert_allclose(drawn.std((0, 1)), 0.3, atol=0.02)
    neighbours = np.corrcoef(drawn[:, :-1, 0].ravel(), drawn[:, 1:, 0].ravel())[0, 1]
    assert neighbours == pytest.approx(0.5, abs=0.05)


def test_a_wishart_draw_has_its_mean() -> None:
    scale_DD, rng = np.array([[0.5, 0.2], [0.2, 1.0]]), np.random.default_rng(0)
    mean_DD = np.mean([wishart(scale_DD, 7, rng) for _ in range(4_000)], axis=0)
    np.testing.assert_allclose(mean_DD, 7 * scale_DD, rtol=0.08)


def test_the_parameters_of_many_rows_are_found() -> None:
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal([1.0, -2.0], [[0.5, 0.3], [0.3, 2.0]], 20_000)
    mean_D, precision_DD = spread_of(rows, rng)
    np.testing.assert_allclose(mean_D, [1, -2], atol=0.05)
    np.testing.assert_allclose(np.linalg.inv(precision_DD), [[0.5, 0.3], [0.3, 2.0]], atol=0.08)


def test_a_row_without_tuples_is_like_the_others() -> None:
    """Drawn from what the other rows tell of rows: their mean and their spread."""
    rng = np.random.default_rng(0)
    table = rng.normal(3, 0.5, (4000, 1))
    drawn = draw_rows(table, Evidence(np.zeros((4000, 1, 1)), np.zeros((4000, 1))), rng)
    assert drawn.mean() == pytest.approx(3, abs=0.05)
    assert drawn.std() == pytest.approx(0.5, abs=0.05)


QUICK = Gibbs(width=3, sweeps=60, burn_in=30)
BIASES = Gibbs(width=0, sweeps=60, burn_in=30)


def test_what_was_made_of_factors_is_predicted_better_than_by_biases() -> None:
    tuples, _ = from_factors(3000, (40, 30, 10), seed=0)
    train, valid, test = split(tuples, np.random.default_rng(0))
    full, biases = (g.sample(train, Normal(), [valid, test], np.random.default_rng(1)) for g in (QUICK, BIASES))
    assert mse(full[1][1], test.value_N) < 0.16  # the noise is 0.09
    assert mse(biases[1][1], test.value_N) > 1.5
    assert mse(full[0].logits(test), test.value_N) < 0.3


def test_a_yes_or_no_of_factors_is_predicted_better_than_by_biases() -> None:
    tuples, truth_N = from_factors(6000, (40, 30, 10), seed=1)
    yes_N = np.random.default_rng(0).random(6000) < 1 / (1 + np.exp(-2 * (truth_N - 3.5)))
    answers = Tuples(*tuples.sides, yes_N.astype(float), tuples.shape)
    train, valid, test = split(answers, np.random.default_rng(0))
    full, biases = (g.sample(train, Bernoulli(), [valid, test], np.random.default_rng(1)) for g in (QUICK, BIASES))
    best = auc(truth_N[np.isin(tuples.key_N, test.key_N)], test.value_N)
    assert auc(full[1][1], test.value_N) > best - 0.03
    assert auc(biases[1][1], test.value_N) < best - 0.1


def test_a_draw_spreads_about_the_mean_as_far_as_the_posterior_is_unsure() -> None:
    """E (draw − y)² = E (mean − y)² + posterior variance: a draw predicts worse by just what is not known."""
    tuples, _ = from_factors(800, (40, 30, 10), seed=2, noise=1.0)
    train, _, test = split(tuples, np.random.default_rng(0))
    draws = [d.logits(test) for d in QUICK.draws(train, Normal(), np.random.default_rng(1))][30:]
    mean_N, variance = np.mean(draws, axis=0), float(np.var(draws, axis=0).mean())
    worse = np.mean([mse(each, test.value_N) for each in draws]) - mse(mean_N, test.value_N)
    assert worse == pytest.approx(variance, rel=1e-6)
    assert variance > 0.1


def test_the_plain_factors_of_a_draw_give_its_logits() -> None:
    tuples, _ = from_factors(300, (12, 10, 6), seed=0)
    draw = Gibbs(width=2, sweeps=3, burn_in=1).sample(tuples, Normal(), [], np.random.default_rng(0))[0]
    np.testing.assert_allclose(draw.factors().logits_of(*tuples.sides), draw.logits(tuples), rtol=1e-4)


def test_every_factor_of_every_side_moves() -> None:
    tuples, _ = from_factors(300, (12, 10, 6), seed=0)
    first, *_, last = Gibbs(width=2, sweeps=4, burn_in=1).draws(tuples, Normal(), np.random.default_rng(0))
    assert all((one != two).all() for one, two in zip(first.tables, last.tables, strict=True))


def test_the_draw_is_the_seed_s() -> None:
    tuples, _ = from_factors(300, (12, 10, 6), seed=0)
    one, same, other = (
        Gibbs(width=2, sweeps=3, burn_in=1).sample(tuples, Normal(), [], np.random.default_rng(seed))[0]
        for seed in (0, 0, 1)
    )
    for mine, yours, theirs in zip(one.tables, same.tables, other.tables, strict=True):
        assert_array_equal(mine, yours)
        assert (mine != theirs).any()
