import numpy as np
import pytest

from unveil.models.factorization.chain import Chain
from unveil.models.factorization.conditionals import Evidence
from unveil.models.factorization.priors import NormalWishart, SlowSteps, wishart


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_precision_of_the_chain_inverts_its_correlations(steps: int) -> None:
    apart_TT = np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
    np.testing.assert_allclose(Chain(steps, 0.8).applied(np.eye(steps)), np.linalg.inv(0.8**apart_TT), atol=1e-9)


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
    drawn = np.array([Chain(T, 0.7).draw(evidence, scale_D, middle_D, rng).ravel() for _ in range(6_000)])
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
    mean_D, precision_DD = NormalWishart().parameters(rows, rng)
    np.testing.assert_allclose(mean_D, [1, -2], atol=0.05)
    np.testing.assert_allclose(np.linalg.inv(precision_DD), [[0.5, 0.3], [0.3, 2.0]], atol=0.08)


def test_a_row_without_tuples_is_like_the_others() -> None:
    """Drawn from what the other rows tell of rows: their mean and their spread."""
    rng = np.random.default_rng(0)
    table = rng.normal(3, 0.5, (4000, 1))
    drawn = NormalWishart().draw(table, Evidence(np.zeros((4000, 1, 1)), np.zeros((4000, 1))), rng)
    assert drawn.mean() == pytest.approx(3, abs=0.05)
    assert drawn.std() == pytest.approx(0.5, abs=0.05)
