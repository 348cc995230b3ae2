"""The doubly robust form: both halves where exposure is seen, what is left of them where it is not, and why."""

from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.data.ragged import sequences_of
from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import build, cloze_risk, events
from unveil.estimators.doubly_robust import DoublyRobust, Transitions, doubly_robust
from unveil.estimators.inverse import ITPS, weight_diagnostics
from unveil.propensity.known import KnownTemporal, Noisy, NoisyTemporal

Row = NDArray[np.float64]
TOY = Toy.drawn(random_world(users=30))
THETA = KnownTemporal(TOY.world)
V = TOY.world.n_items


def robust(trust: float = 0.2, theta: KnownTemporal | Noisy = THETA) -> DoublyRobust:
    made = build("doubly-robust", {"trust": trust}, propensity=theta, train=TOY.train)
    assert isinstance(made, DoublyRobust)
    return made


def mean_over_all(theta_V: Row, mu_V: Row, imputed_V: Row, told_V: Row) -> Row:
    """E[a_V] at a slot whose exposure is seen: all O, and the pick of the user of the proof, who takes i with μ_i."""
    mean_V, picks = np.zeros(len(theta_V)), [*range(len(theta_V)), None]
    for seen, pick in product(product([0.0, 1.0], repeat=len(theta_V)), picks):
        shown_V = np.array(seen)
        p = np.prod(np.where(shown_V > 0, theta_V, 1 - theta_V)) * (1 - mu_V.sum() if pick is None else mu_V[pick])
        taken_V = shown_V * (np.arange(len(theta_V)) == pick)
        parts = (torch.from_numpy(each_V) for each_V in (imputed_V, taken_V, shown_V, told_V))
        mean_V += p * doubly_robust(*parts).numpy()
    return mean_V


def setting(seed: int) -> tuple[Row, Row, Row, Row]:
    """θ, μ, another θ and another m."""
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(0.1, 0.9, 4),
        0.8 * rng.dirichlet(np.ones(4)),
        rng.uniform(0.1, 0.9, 4),
        rng.dirichlet(np.ones(4)),
    )


@pytest.mark.parametrize("seed", range(3))
def test_unbiased_if_the_propensity_is_right_whatever_is_imputed(seed: int) -> None:
    theta_V, mu_V, _, wrong_V = setting(seed)
    np.testing.assert_allclose(mean_over_all(theta_V, mu_V, wrong_V, theta_V), mu_V)


@pytest.mark.parametrize("seed", range(3))
def test_unbiased_if_the_imputation_is_right_whatever_the_propensity(seed: int) -> None:
    theta_V, mu_V, wrong_V, _ = setting(seed)
    np.testing.assert_allclose(mean_over_all(theta_V, mu_V, mu_V, wrong_V), mu_V)


@pytest.mark.parametrize("seed", range(3))
def test_biased_by_the_product_of_the_errors_if_neither_is(seed: int) -> None:
    theta_V, mu_V, told_V, imputed_V = setting(seed)
    found_V = mean_over_all(theta_V, mu_V, imputed_V, told_V)
    np.testing.assert_allclose(found_V - mu_V, (1 - theta_V / told_V) * (imputed_V - mu_V))


def event_chances(theta_V: Row, mu_V: Row) -> Row:
    """P(the slot's event is i), all O and all picks: what a log of events can show."""
    chance_V = np.zeros(len(theta_V))
    for seen, pick in product(product([0, 1], repeat=len(theta_V)), range(len(theta_V))):
        p = np.prod(np.where(np.array(seen) > 0, theta_V, 1 - theta_V)) * mu_V[pick]
        chance_V[pick] += p * seen[pick]
    return chance_V


class Given:
    """An imputation that is given."""

    def __init__(self, m_V: Row) -> None:
        self.m_V = torch.from_numpy(m_V).float()

    def __call__(self, slots: Slots) -> Tensor:
        return self.m_V[slots.item_M]

    def of_all(self, slots: Slots) -> Tensor:
        return self.m_V.repeat(len(slots), 1)


def mean_over_events(estimator: DoublyRobust, chance_V: Row) -> Row:
    """E[a_V] at the first slot over all of its events; without one there is no slot."""
    mean_V = np.zeros(V)
    for item in range(V):
        signal = estimator(Slots(torch.tensor([0]), torch.tensor([item]), torch.tensor([3])))
        assert signal.imputed_MV is not None
        a_V = signal.imputed_MV[:][0].double().numpy()
        a_V[item] += float(signal.weight_M[0])
        mean_V += chance_V[item] * a_V
    return mean_V


def at_first_slot(theta: KnownTemporal | Noisy) -> Row:
    return theta.of_all(Slots(torch.tensor([0]), torch.tensor([0]), torch.tensor([3])))[0].double().numpy()


def test_no_estimator_has_both_halves_on_a_log_of_events() -> None:
    """Two truths, one log. Told θ of the first and μ of the second, it should say μ and μ′ of the same log."""
    theta_V, mu_V = at_first_slot(THETA), 0.5 * np.random.default_rng(0).dirichlet(np.ones(V))
    other_V = np.clip(theta_V * np.where(np.arange(V) == mu_V.argmax(), 0.5, 1.5), 0, 1)
    other_mu_V = theta_V * mu_V / other_V
    assert other_mu_V.sum() <= 1
    assert np.abs(mu_V - other_mu_V).max() > 0.1
    # Where exposure is seen it says both.
    np.testing.assert_allclose(mean_over_all(theta_V, mu_V, other_mu_V, theta_V), mu_V)
    np.testing.assert_allclose(mean_over_all(other_V, other_mu_V, other_mu_V, theta_V), other_mu_V)
    # From events alone, which are those of either truth, it says one thing: near to ∝ μ, so not ∝ μ′, which is imputed.
    chance_V = event_chances(theta_V, mu_V)
    np.testing.assert_allclose(chance_V, event_chances(other_V, other_mu_V))
    estimator = robust(1.0)
    object.__setattr__(estimator, "imputation", Given(other_mu_V))
    said_V = mean_over_events(estimator, chance_V)
    off, other_off = (np.abs(said_V / said_V.sum() - each_V / each_V.sum()).max() for each_V in (mu_V, other_mu_V))
    assert off < 0.02
    assert other_off > 0.1


@pytest.mark.parametrize("theta", [THETA, NoisyTemporal(TOY.world, sd=1.0)])
def test_on_a_log_of_events_its_mean_is_the_formula(theta: KnownTemporal | Noisy) -> None:
    rng = np.random.default_rng(0)
    true_V, mu_V, m_V = at_first_slot(THETA), 0.8 * rng.dirichlet(np.ones(V)), rng.dirichlet(np.ones(V))
    estimator = robust(0.5, theta)
    object.__setattr__(estimator, "imputation", Given(m_V))
    chance_V = true_V * mu_V
    expected_V = chance_V.sum() * 0.5 * m_V + true_V / at_first_slot(theta) * mu_V * (1 - 0.5 * m_V)
    np.testing.assert_allclose(mean_over_events(estimator, chance_V), expected_V, rtol=1e-5)


def test_where_the_imputation_is_right_and_certain_the_minimum_is_right_whatever_the_propensity() -> None:
    """The user takes the favourite and no other: the learnt softmax ∝ E[a] has all its mass there."""
    favourite_V = np.eye(V)[2]
    estimator = robust(1.0, NoisyTemporal(TOY.world, sd=2.0))
    object.__setattr__(estimator, "imputation", Given(favourite_V))
    learnt_V = mean_over_events(estimator, at_first_slot(THETA) * favourite_V)
    np.testing.assert_allclose(learnt_V / learnt_V.sum(), favourite_V, atol=1e-7)


def test_without_trust_it_is_itps() -> None:
    mine, plain = robust(0.0)(TOY.slots), ITPS(THETA)(TOY.slots)
    torch.testing.assert_close(mine.weight_M, plain.weight_M)
    assert mine.imputed_MV is not None
    assert not mine.imputed_MV[:].any()
    assert weight_diagnostics(robust(), TOY.slots) is not None


def test_a_clipped_propensity_counts_as_such_whatever_is_imputed() -> None:
    made = [build(n, {"clip": 0.5}, propensity=THETA, train=TOY.train) for n in ("itps", "doubly-robust")]
    plain, mine = (weight_diagnostics(each, TOY.slots) for each in made)
    assert plain is not None
    assert mine is not None
    assert mine.clipped == plain.clipped > 0
    assert mine.mean < plain.mean


def test_transitions_by_hand() -> None:
    # 0 → 1 twice and 0 → 2 once; shares 3, 2, 1 of 6; k = 6. At the first 0 → 1 that event itself is left out.
    train = sequences_of([[0, 1], [0, 1], [0, 2]], 3)
    m_MV = Transitions.of(train, backing=6.0).of_all(events(train))
    np.testing.assert_allclose(m_MV[0], np.array([3, 2, 1]) / 6, rtol=1e-6)
    np.testing.assert_allclose(m_MV[1], np.array([0 + 3, 1 + 2, 1 + 1]) / 8, rtol=1e-6)
    np.testing.assert_allclose(m_MV[5], np.array([0 + 3, 2 + 2, 0 + 1]) / 8, rtol=1e-6)
    stranger = Slots(torch.tensor([0]), torch.tensor([1]), torch.tensor([0]), torch.tensor([99]))
    np.testing.assert_allclose(Transitions.of(train, 6.0).of_all(stranger)[0], np.array([3, 2, 1]) / 6, rtol=1e-6)


def test_imputed_rows_are_distributions() -> None:
    m_MV = Transitions.of(TOY.train, 10.0).of_all(TOY.slots)
    assert (m_MV >= 0).all()
    torch.testing.assert_close(m_MV.sum(1), torch.ones(len(TOY.slots)))


def test_what_is_imputed_to_the_slots_own_items_is_that_of_all() -> None:
    stranger = Slots(torch.tensor([0]), torch.tensor([1]), torch.tensor([0]), torch.tensor([10**6]))
    for slots in (TOY.slots, stranger, TOY.slots.part(0, 0)):
        imputation = Transitions.of(TOY.train, 10.0)
        assert torch.equal(imputation(slots), imputation.of_all(slots).gather(1, slots.item_M[:, None])[:, 0])


def test_the_loss_by_hand() -> None:
    # p = (1, 3) / 4; imputed ½ and ¼, target 1 with weight 2: ½ log 4 + 2¼ log 4/3.
    signal = robust()(TOY.slots.part(0, 1))
    signal = type(signal)(torch.tensor([1]), torch.tensor([2.0]), imputed_MV=torch.tensor([[0.5, 0.25]]))
    risk = cloze_risk(torch.tensor([[0.0, np.log(3)]]).float(), torch.eye(2), torch.zeros(2), signal)
    assert risk.item() == pytest.approx(0.5 * np.log(4) + 2.25 * np.log(4 / 3))


def test_gradients_by_finite_differences() -> None:
    rng = torch.Generator().manual_seed(0)
    p = [torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_() for shape in ((4, 3), (5, 3), (5,))]
    imputed_MV = torch.rand(4, 5, generator=rng, dtype=torch.float64)
    signal = type(robust()(TOY.slots))(torch.arange(4), torch.rand(4, generator=rng), imputed_MV=imputed_MV)

    def risk(h_MD: Tensor, table_VD: Tensor, bias_V: Tensor) -> Tensor:
        return cloze_risk(h_MD, table_VD, bias_V, signal)

    assert torch.autograd.gradcheck(risk, p)


@pytest.mark.parametrize("options", [{"trust": 1.5}, {"trust": -0.1}, {"backing": 0.0}, {"clip": 2.0}])
def test_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        build("doubly-robust", options, propensity=THETA, train=TOY.train)
