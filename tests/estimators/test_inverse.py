"""Shrunk weights: where they are cut and what that does to the error; the bias of self-normalised weights."""

from itertools import product
from math import comb

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Signal, build, cloze_risk
from unveil.estimators.inverse import ITPS, ShrunkITPS, best_cut, weight_diagnostics
from unveil.propensity.known import KnownTemporal, Logged

TOY = Toy.drawn(random_world(users=30))
THETA = KnownTemporal(TOY.world)
weights = st.lists(st.floats(1, 1000), min_size=1, max_size=30).map(np.array)


def shrunk(**options: object) -> ShrunkITPS:
    made = build("itps-shrunk", options, propensity=THETA, train=TOY.train)
    assert isinstance(made, ShrunkITPS)
    return made


def bound(weight_N: NDArray[np.float64], shrunk_N: NDArray[np.float64], support: float) -> float:
    """Squared bias plus variance, at worst, of a mean over `support` slots whose losses lie between 0 and 1."""
    return float((weight_N - shrunk_N).mean() ** 2 + (shrunk_N**2).mean() / support)


def test_by_hand() -> None:
    # Weights 1 and 3, n = 1: λ = ½ (3 − λ) above 1 gives λ = 1. n = 4: λ = 4 · ½ (3 − λ) gives λ = 2.
    assert best_cut(np.array([1.0, 3.0]), 1.0) == pytest.approx(1.0)
    assert best_cut(np.array([1.0, 3.0]), 4.0) == pytest.approx(2.0)
    assert best_cut(np.array([]), 4.0) == np.inf


@given(weights, st.floats(0.1, 1000))
def test_the_cut_is_where_its_equation_holds(weight_N: NDArray[np.float64], support: float) -> None:
    cut = best_cut(weight_N, support)
    assert cut == pytest.approx(support * np.maximum(weight_N - cut, 0).mean())


@given(weights, st.floats(0.1, 1000), st.integers(0, 99))
def test_no_other_shrinkage_has_a_smaller_bound(weight_N: NDArray[np.float64], support: float, seed: int) -> None:
    least = bound(weight_N, np.minimum(weight_N, best_cut(weight_N, support)), support)
    rng = np.random.default_rng(seed)
    for kept in (1.0, rng.random(), rng.random(len(weight_N))):
        assert least <= bound(weight_N, kept * weight_N, support) * (1 + 1e-9)
    for cut in (rng.random() * weight_N.max(), weight_N.mean()):
        assert least <= bound(weight_N, np.minimum(weight_N, cut), support) * (1 + 1e-9)


def test_consistent_where_itps_is_as_no_weight_is_cut_in_the_end() -> None:
    plain_M = ITPS(THETA)(TOY.slots).weight_M
    cuts = [shrunk(support=float(support)).cut for support in (1, 10, 1e3, 1e9)]
    assert cuts == sorted(cuts)
    assert cuts[0] < float(plain_M.max())
    torch.testing.assert_close(shrunk(support=1e9)(TOY.slots).weight_M, plain_M, rtol=1e-4, atol=0)


def test_by_default_an_answer_rests_on_the_events_of_an_item() -> None:
    per_item = len(TOY.train) / len(np.unique(TOY.train.item_N))
    assert shrunk().cut == shrunk(support=per_item).cut


def test_weights_are_those_of_itps_up_to_the_cut_and_diagnosed_as_such() -> None:
    estimator, plain_M = shrunk(support=2.0), ITPS(THETA)(TOY.slots).weight_M
    signal = estimator(TOY.slots)
    torch.testing.assert_close(signal.weight_M, plain_M.clamp_max(estimator.cut))
    found = weight_diagnostics(estimator, TOY.slots)
    assert found is not None
    assert found.clipped == pytest.approx(float((plain_M >= estimator.cut).double().mean()))
    assert shrunk(clip=0.9, support=1e9).ceiling == pytest.approx(1 / 0.9, rel=1e-3)


def errors(theta_S: NDArray[np.float64], loss_S: NDArray[np.float64], weight_S: NDArray[np.float64]) -> float:
    """The mean squared error of Σ_s w_s Y_s ℓ_s / n over all logs of n slots, each seen with probability θ."""
    ideal, error = loss_S.mean(), 0.0
    for seen in product([0, 1], repeat=len(theta_S)):
        shown_S = np.array(seen)
        p = np.prod(np.where(shown_S, theta_S, 1 - theta_S))
        error += p * ((weight_S * shown_S * loss_S).mean() - ideal) ** 2
    return float(error)


def test_the_error_over_all_logs_is_smaller_than_that_of_itps() -> None:
    """Ten slots, most seen often and some hardly ever, losses at random: all 1,024 logs, as the user of the proof."""
    rng = np.random.default_rng(0)
    plain, cut = [], []
    for _ in range(8):
        theta_S, loss_S = np.where(np.arange(10) < 7, 0.5, 0.02), rng.random(10)
        logged_N = np.repeat(1 / theta_S, (1000 * theta_S).astype(int))  # weights as a log has them
        weight_S = np.minimum(1 / theta_S, best_cut(logged_N, 10.0))
        plain.append(errors(theta_S, loss_S, 1 / theta_S))
        cut.append(errors(theta_S, loss_S, weight_S))
    assert np.mean(cut) < 0.5 * np.mean(plain)


def test_out_of_range() -> None:
    with pytest.raises(UnveilError, match=r"itps-shrunk\.support: out of range"):
        shrunk(support=-1.0)


TWO_THETA = np.array([0.2, 0.7])
SLOTS = Slots(torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([0, 0]), torch.tensor([0, 1]))
F_MV = torch.tensor([[2.0, 0.0], [1.5, 0.0]], dtype=torch.float64)


def risk(signal: Signal, normaliser: float) -> float:
    return cloze_risk(F_MV, torch.eye(2).double(), torch.zeros(2).double(), signal, normaliser=normaliser).item()


def bias(n: int) -> float:
    """E[Σ w ℓ / Σ w] less the mean loss of all slots, relative: n slots of each kind, k of them seen."""
    weight_M = ITPS(Logged(TWO_THETA), self_normalised=True)(SLOTS).weight_M.double()
    ideal, mean, something = risk(Signal(SLOTS.item_M, torch.ones(2)), 2.0), 0.0, 0.0
    for seen in product(range(n + 1), repeat=2):
        if any(seen):
            p = np.prod([comb(n, k) * q**k * (1 - q) ** (n - k) for k, q in zip(seen, TWO_THETA, strict=True)])
            held_M = weight_M * torch.tensor(seen)
            mean += p * risk(Signal(SLOTS.item_M, held_M), float(held_M.sum()))
            something += p
    return (mean / something - ideal) / ideal


def test_consistent_with_a_bias_that_falls_as_one_over_the_slots() -> None:
    few, more, many = (abs(bias(n)) for n in (4, 16, 32))
    assert few > 0.05
    assert few > 2.5 * more > 4 * many
    assert more == pytest.approx(2 * many, rel=0.3)
