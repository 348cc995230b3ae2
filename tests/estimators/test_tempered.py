"""How much of a propensity a log bears out: by hand, where it is known, and where there is nothing to find."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logit
from torch import Tensor

from tests.data.ragged import sequences_of
from tests.estimators.toys import Toy, random_world
from unveil.data.interactions import Sequences
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Estimator, build, cloze_risk, events
from unveil.estimators.corrected import CorrectedTempered, ExposureCorrected, contrasts, most_likely, supported_share
from unveil.estimators.inverse import weight_diagnostics
from unveil.estimators.naive import Naive
from unveil.propensity.factors import Factors
from unveil.propensity.known import KnownTemporal
from unveil.propensity.popularity import TemporalPopularity
from unveil.simulation.world import World

TOY = Toy.drawn(random_world(users=30))
THETA = KnownTemporal(TOY.world)


def tempered(**options: object) -> CorrectedTempered:
    made = build("corrected-tempered", options, propensity=THETA, train=TOY.train)
    assert isinstance(made, CorrectedTempered)
    return made


def test_the_likeliest_by_hand() -> None:
    # Three pairs of four stand as θ says, by 2 each: odds e^(2τ) = 3.
    assert most_likely(np.tile([2.0, 2.0, 2.0, -2.0], 1000)) == pytest.approx(np.log(3) / 2, abs=1e-3)
    assert most_likely(np.array([2.0, -2.0, -2.0])) == 0.0
    assert most_likely(np.full(1000, 0.1)) == 1.0
    assert most_likely(np.full(1000, 1e-7)) < 0.001  # as much as rounding makes: no evidence
    assert most_likely(np.zeros(5)) == most_likely(np.array([])) == 0.0


def test_contrasts_by_hand() -> None:
    # One user, items 2, 0, 1, 3, 4 at steps 0 … 4: pairs (2 at 0, 1 at 2) and (0 at 1, 3 at 3).
    theta_TV = THETA.world.exposure(np.zeros(5, np.int64), np.arange(5)).astype(np.float64)
    train = sequences_of([[2, 0, 1, 3, 4]], TOY.world.n_items)
    log_TV = np.log(theta_TV)
    expected = [
        log_TV[0, 2] + log_TV[2, 1] - log_TV[0, 1] - log_TV[2, 2],
        log_TV[1, 0] + log_TV[3, 3] - log_TV[1, 3] - log_TV[3, 0],
    ]
    np.testing.assert_allclose(contrasts(THETA, train), expected, rtol=1e-4)
    np.testing.assert_array_equal(contrasts(THETA, train, lowest=1.0), 0)  # raised to 1 they are all alike


def drawn(world: World, tau: float, seed: int = 0) -> Sequences:
    """A log of P(i | s, t) ∝ θ_sit^τ · e^f_si at every step, f as different from user to user as can be."""
    rng, (U, V, T) = np.random.default_rng(seed), (world.n_users, world.n_items, world.n_steps)
    f_UV, histories = 2 * rng.normal(size=(U, V)), []
    for user in range(U):
        theta_TV = world.exposure(np.full(T, user), np.arange(T))
        noise_TV: NDArray[np.float64] = rng.gumbel(size=(T, V))
        histories.append([int(i) for i in (tau * np.log(theta_TV) + f_UV[user] + noise_TV).argmax(1)])
    return sequences_of(histories, V)


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
def test_consistent_whatever_the_preferences(tau: float) -> None:
    world = random_world(users=1500)
    assert supported_share(KnownTemporal(world), drawn(world, tau)) == pytest.approx(tau, abs=0.06)


def test_exposure_that_keeps_still_bears_out_nothing() -> None:
    world = random_world(users=50, moving=False)
    made = build("corrected-tempered", {}, propensity=KnownTemporal(world), train=drawn(world, 1.0))
    assert isinstance(made, CorrectedTempered)
    assert made.tau < 0.05


def test_counts_are_not_judged_by_the_events_they_counted() -> None:
    """Exposure that does nothing: popularity explains its own events, and nobody else's."""
    world = random_world(users=300, items=60)
    train = drawn(world, 0.0)
    assert most_likely(contrasts(TemporalPopularity().fit(train), train)) > 0.5
    assert supported_share(TemporalPopularity(), train) < 0.1


def test_the_propensity_that_was_given_stays_as_it_is() -> None:
    counted = TemporalPopularity().fit(TOY.train)
    before = counted(TOY.slots)
    supported_share(counted, TOY.train)
    assert torch.equal(counted(TOY.slots), before)


def offset(estimator: Estimator, slots: Slots) -> Tensor:
    offset_MV = estimator(slots).offset_MV
    assert offset_MV is not None
    return offset_MV[:]


def test_only_what_moves_is_corrected() -> None:
    """What is taken away averages to nothing for every item: the static part is as the naive loss sees it."""
    estimator = tempered()
    found_MV = offset(estimator, events(TOY.train))
    torch.testing.assert_close(found_MV.exp().mean(0), torch.ones(TOY.world.n_items), atol=1e-4, rtol=0)
    plain_MV = offset(ExposureCorrected(THETA), events(TOY.train))
    assert estimator.tau > 0
    moved_MV = estimator.tau * (plain_MV - plain_MV[0])
    torch.testing.assert_close(found_MV - found_MV[0], moved_MV, atol=1e-5, rtol=0)


def test_all_of_it_is_corrected() -> None:
    estimator = tempered(static=1.0, strength=0.7)
    object.__setattr__(estimator, "tau", 1.0)
    torch.testing.assert_close(offset(estimator, TOY.slots), offset(ExposureCorrected(THETA, strength=0.7), TOY.slots))
    assert weight_diagnostics(estimator, TOY.slots) is None


@pytest.mark.parametrize("static", [0.0, 0.3, 1.0])
def test_so_much_of_an_items_mean_is_left_in_by_hand(static: float) -> None:
    """τ · strength · log θ less (1 − static) times the logarithm of the mean of θ^(τ · strength) over all events."""
    estimator = tempered(static=static, strength=0.7)
    assert estimator.tau > 0
    power, every = 0.7 * estimator.tau, events(TOY.train)
    own_MV, all_NV = (
        TOY.world.exposure(slots.user_M.numpy(), slots.step_M.numpy()).astype(np.float64) ** power
        for slots in (TOY.slots, every)
    )
    expected_MV = np.log(own_MV) - (1 - static) * np.log(all_NV.mean(0))
    np.testing.assert_allclose(offset(estimator, TOY.slots).numpy(), expected_MV, atol=1e-5)


#: Two tastes s at two steps t: 5 θ_sit^½ and e^f_si in whole numbers. Both differ from one taste to the other.
ROOT_STV = np.array([[[1, 2, 4], [4, 1, 2]], [[2, 4, 1], [1, 2, 4]]])
APPEAL_SV = np.array([[4, 2, 1], [1, 1, 2]])


def every_history() -> tuple[World, Sequences, NDArray[np.int64]]:
    """All histories of two steps, a user each, as often as P ∝ θ_sit^½ · e^f_si has them; and each user's taste."""
    histories, taste = [], []
    for s, (first_V, then_V) in enumerate(ROOT_STV * APPEAL_SV[:, None]):
        for i, k in product(range(3), repeat=2):
            histories += [[i, k]] * (first_V[i] * then_V[k])
            taste += [s] * (first_V[i] * then_V[k])
    taste_U, theta_STV = np.array(taste), (ROOT_STV / 5) ** 2
    of_taste_UK, at_step_TK = np.eye(2)[taste_U].repeat(2, axis=1), np.tile(np.eye(2), 2)
    shown = Factors.of(of_taste_UK, logit(theta_STV).reshape(4, 3).T, at_step_TK)
    world = random_world(users=len(taste_U), items=3, steps=2)
    return replace(world, exposure_logits=shown), sequences_of(histories, 3), taste_U


def least(estimator: Estimator, train: Sequences, taste_U: NDArray[np.int64]) -> NDArray[np.float64]:
    """f_SV of least loss, as the trainer computes it, with an f of its own for each taste; 0 on average."""
    slots, nothing_V = events(train), torch.zeros(3, dtype=torch.float64)
    h_MS, signal = torch.from_numpy(np.eye(2)[taste_U[train.user_N]]), estimator(slots)

    def risk(f: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        f_VS = torch.from_numpy(f.reshape(3, 2)).requires_grad_()
        loss = cloze_risk(h_MS, f_VS, nothing_V, signal)
        return loss.item(), torch.autograd.grad(loss, f_VS)[0].numpy().ravel()

    return centred(minimize(risk, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-8}).x.reshape(3, 2).T)


def centred(f_SV: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(f_SV - f_SV.mean(1, keepdims=True))


@pytest.mark.parametrize("static", [0.0, 1.0])
def test_f_is_found_up_to_each_items_mean_exposure(static: float) -> None:
    """What is added to f is the logarithm of an item's mean θ^τ over all events, the same for all users; or nothing."""
    world, train, taste_U = every_history()
    made = build("corrected-tempered", {"static": static}, propensity=KnownTemporal(world), train=train)
    assert isinstance(made, CorrectedTempered)
    assert made.tau == pytest.approx(0.5, abs=0.005)
    mean_V = (ROOT_STV.mean(1)[taste_U] / 5).mean(0)
    expected_SV = centred(np.log(APPEAL_SV) + (1 - static) * np.log(mean_V))
    np.testing.assert_allclose(least(made, train, taste_U), expected_SV, atol=0.01)
    assert np.abs(least(Naive(), train, taste_U) - expected_SV).max() > 0.1


@pytest.mark.parametrize("options", [{"static": 1.5}, {"static": -0.1}, {"clip": 0.0}])
def test_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        tempered(**options)


def test_the_mean_is_over_events_spread_over_the_training_part() -> None:
    """1,024 of 9,000 events stand for all of them."""
    world = random_world(users=1000)
    train, theta = drawn(world, 1.0), KnownTemporal(world)
    made = build("corrected-tempered", {}, propensity=theta, train=train)
    assert isinstance(made, CorrectedTempered)
    assert len(train) > 8 * 1024
    every_V = theta.of_all(events(train)).double().pow(made.tau).mean(0)
    np.testing.assert_allclose(made.mean_V.double().exp(), every_V, rtol=0.05)
