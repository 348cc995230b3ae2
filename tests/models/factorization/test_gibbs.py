import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.models.factorization.tiny import from_factors
from unveil.models.factorization.gibbs import Gibbs, sample
from unveil.models.factorization.likelihood import Bernoulli, Normal
from unveil.models.factorization.scores import auc, mse
from unveil.models.factorization.tuples import Tuples, split

QUICK = Gibbs(width=3, sweeps=60, burn_in=30)
BIASES = Gibbs(width=0, sweeps=60, burn_in=30)


def test_what_was_made_of_factors_is_predicted_better_than_by_biases() -> None:
    tuples, _ = from_factors(3000, (40, 30, 10), seed=0)
    train, valid, test = split(tuples, np.random.default_rng(0))
    full, biases = (sample(g, train, Normal(), [valid, test], np.random.default_rng(1)) for g in (QUICK, BIASES))
    assert mse(full.mean[1], test.value_N) < 0.16  # the noise is 0.09
    assert mse(biases.mean[1], test.value_N) > 1.5
    assert mse(full.draw.logits(test), test.value_N) < 0.3


def test_a_yes_or_no_of_factors_is_predicted_better_than_by_biases() -> None:
    tuples, truth_N = from_factors(6000, (40, 30, 10), seed=1)
    yes_N = np.random.default_rng(0).random(6000) < 1 / (1 + np.exp(-2 * (truth_N - 3.5)))
    answers = Tuples(*tuples.sides, yes_N.astype(float), tuples.shape)
    train, valid, test = split(answers, np.random.default_rng(0))
    full, biases = (sample(g, train, Bernoulli(), [valid, test], np.random.default_rng(1)) for g in (QUICK, BIASES))
    best = auc(truth_N[np.isin(tuples.key_N, test.key_N)], test.value_N)
    assert auc(full.mean[1], test.value_N) > best - 0.03
    assert auc(biases.mean[1], test.value_N) < best - 0.1


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
    draw = sample(Gibbs(width=2, sweeps=3, burn_in=1), tuples, Normal(), [], np.random.default_rng(0)).draw
    np.testing.assert_allclose(draw.factors().logits_of(*tuples.sides), draw.logits(tuples), rtol=1e-4)


def test_every_factor_of_every_side_moves() -> None:
    tuples, _ = from_factors(300, (12, 10, 6), seed=0)
    first, *_, last = Gibbs(width=2, sweeps=4, burn_in=1).draws(tuples, Normal(), np.random.default_rng(0))
    assert all((one != two).all() for one, two in zip(first.tables, last.tables, strict=True))


def test_the_draw_is_the_seed_s() -> None:
    tuples, _ = from_factors(300, (12, 10, 6), seed=0)
    one, same, other = (
        sample(Gibbs(width=2, sweeps=3, burn_in=1), tuples, Normal(), [], np.random.default_rng(seed)).draw
        for seed in (0, 0, 1)
    )
    for mine, yours, theirs in zip(one.tables, same.tables, other.tables, strict=True):
        assert_array_equal(mine, yours)
        assert (mine != theirs).any()
