from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.factorization.tiny import Values, some
from unveil.models.factorization import conditionals
from unveil.models.factorization.conditionals import Grouped, normal
from unveil.models.factorization.tuples import Tuples


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
    monkeypatch.setattr(conditionals, "_BLOCK", 7)
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
