import numpy as np
import pytest

from unveil.models.factorization.polya_gamma import mean, polya_gamma


@pytest.mark.parametrize("tilt", [0.0, 0.5, -2.0, 8.0])
def test_the_moments_are_those_of_the_distribution(tilt: float) -> None:
    """Var = (sinh c − c) / (4c³ cosh²(c/2)), and 1/24 at c = 0."""
    drawn_N = polya_gamma(np.full(200_000, tilt), np.random.default_rng(0))
    variance = 1 / 24 if tilt == 0 else (np.sinh(tilt) - tilt) / (4 * tilt**3 * np.cosh(tilt / 2) ** 2)
    assert drawn_N.min() > 0
    assert drawn_N.mean() == pytest.approx(mean(np.array([tilt]))[0], rel=0.01)
    assert drawn_N.var() == pytest.approx(variance, rel=0.03)


@pytest.mark.parametrize("tilt", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("at", [0.5, 2.0, 8.0])
def test_the_laplace_transform_is_that_of_the_distribution(tilt: float, at: float) -> None:
    """E[e^{−tω}] = cosh(c/2) / cosh √(c²/4 + t/2)."""
    drawn_N = polya_gamma(np.full(200_000, tilt), np.random.default_rng(1))
    expected = np.cosh(tilt / 2) / np.cosh(np.sqrt(tilt**2 / 4 + at / 2))
    assert np.exp(-at * drawn_N).mean() == pytest.approx(expected, rel=0.01)


def test_the_mean_is_continuous_at_zero() -> None:
    np.testing.assert_allclose(mean(np.array([0.0, 1e-5, 2e-4, 1e-2])), 0.25, rtol=1e-4)


def test_nothing_gives_nothing() -> None:
    assert len(polya_gamma(np.zeros(0), np.random.default_rng(0))) == 0
