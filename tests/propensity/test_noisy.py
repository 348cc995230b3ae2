"""The noise has the law it claims, belongs to its place, and moves θ as its equation says."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.propensity.build import build
from unveil.propensity.known import KnownStatic, KnownTemporal, Noisy, NoisyStatic, NoisyTemporal, normals

TOY = Toy.drawn(random_world(users=30))
BOTH = [NoisyStatic, NoisyTemporal]


def logit(theta: torch.Tensor) -> torch.Tensor:
    return torch.logit(theta.double())


def splitmix64(state: int, nth: int) -> int:
    """The nth output of the generator as it is usually written, in whole numbers of any size."""
    word = (state + nth * 0x9E3779B97F4A7C15) % 2**64
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
    return word ^ (word >> 31)


@given(st.integers(0, 2**63 - 1), st.integers(0, 10**6), st.integers(0, 10**4), st.integers(0, 10**6))
def test_a_number_worked_out_in_whole_numbers_of_any_size(seed: int, user: int, step: int, item: int) -> None:
    word = splitmix64(splitmix64(splitmix64(seed, user + 1), step + 1), item + 1)
    u, v = ((word >> 32) + 0.5) / 2**32, (word % 2**32) / 2**32
    expected = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
    found = normals(seed, np.array([user]), np.array([step]), np.array([item]))
    assert found[0] == pytest.approx(expected, abs=1e-5)


def test_the_first_outputs_of_splitmix64_are_the_published_ones() -> None:
    assert [splitmix64(1234567, nth) for nth in (1, 2, 3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def cube(seed: int = 0, size: int = 64) -> np.ndarray:
    """ε of every (user, step, item) of a cube: neighbouring places, the hardest for a hash to tell apart."""
    user_M, step_M = (index.ravel() for index in np.indices((size, size)))
    return normals(seed, user_M, step_M, np.arange(size)[None]).reshape(size, size, size).astype(np.float64)


def test_the_noise_is_standard_normal() -> None:
    noise = cube().ravel()
    n = len(noise)
    assert abs(noise.mean()) < 4 / np.sqrt(n)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / n)
    assert kstest(noise, "norm").pvalue > 1e-3
    assert np.isfinite(noise).all()
    assert abs(noise).max() > 4.2  # one in 37,000


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("apart", [1, 2, 32])
def test_neighbours_know_nothing_of_each_other(axis: int, apart: int) -> None:
    noise = np.moveaxis(cube(), axis, 0)
    one, other = noise[apart:].ravel(), noise[:-apart].ravel()
    for f in (lambda x: x, np.square):
        assert abs(np.corrcoef(f(one), f(other))[0, 1]) < 4 / np.sqrt(len(one))


def test_means_over_lines_scatter_as_those_of_independent_numbers_do() -> None:
    noise = cube()
    for axis in range(3):
        line = noise.mean(axis) * np.sqrt(noise.shape[axis])
        assert abs(line.var() - 1) < 4 * np.sqrt(2 / line.size)


def test_seeds_and_exchanged_places_give_other_numbers() -> None:
    noise = cube()
    for other in (cube(1), noise.transpose(1, 0, 2), noise.transpose(2, 1, 0), noise.transpose(0, 2, 1)):
        different = noise != other
        assert different.mean() > 0.98  # the diagonals are the same places
        assert abs(np.corrcoef(noise[different], other[different])[0, 1]) < 0.01


@pytest.mark.parametrize("kind", BOTH)
def test_logits_are_moved_by_normal_noise_of_the_stated_size(kind: type[Noisy]) -> None:
    true = (KnownStatic if kind is NoisyStatic else KnownTemporal)(TOY.world).of_all(TOY.slots)
    moved = logit(kind(TOY.world, sd=0.7, bias=-0.3).of_all(TOY.slots)) - logit(true)
    if kind is NoisyStatic:
        moved = moved[np.unique(TOY.slots.user_M, return_index=True)[1]]
    error = moved.numpy().ravel()
    assert error.mean() == pytest.approx(-0.3, abs=4 * 0.7 / np.sqrt(len(error)))
    assert error.std() == pytest.approx(0.7, rel=4 / np.sqrt(2 * len(error)))
    assert abs(np.corrcoef(error, logit(true).numpy().ravel()[: len(error)])[0, 1]) < 4 / np.sqrt(len(error))


@pytest.mark.parametrize("kind", BOTH)
def test_without_noise_it_is_the_truth(kind: type[Noisy]) -> None:
    true = (KnownStatic if kind is NoisyStatic else KnownTemporal)(TOY.world)
    exact = kind(TOY.world, sd=0.0).fit(TOY.train)
    torch.testing.assert_close(exact(TOY.slots), true(TOY.slots))
    torch.testing.assert_close(exact.of_all(TOY.slots), true.of_all(TOY.slots))


@pytest.mark.parametrize("kind", BOTH)
def test_a_place_has_one_error_whoever_asks(kind: type[Noisy]) -> None:
    one, again, other = kind(TOY.world), kind(TOY.world), kind(TOY.world, seed=1)
    theta_MV = one.of_all(TOY.slots)
    assert torch.equal(theta_MV, again.of_all(TOY.slots))
    assert not torch.equal(theta_MV, other.of_all(TOY.slots))
    turned = Slots(TOY.slots.user_M.flip(0), TOY.slots.item_M.flip(0), TOY.slots.step_M.flip(0))
    assert torch.equal(again(turned).flip(0), one(TOY.slots))
    torch.testing.assert_close(theta_MV.gather(1, TOY.slots.item_M[:, None])[:, 0], one(TOY.slots))


def test_many_rows_are_disturbed_as_few_are() -> None:
    """More cells than are worked on at once."""
    times = 2**17 // TOY.world.n_items // len(TOY.slots) + 2
    many = Slots(*(index.repeat(times) for index in (TOY.slots.user_M, TOY.slots.item_M, TOY.slots.step_M)))
    model = NoisyTemporal(TOY.world)
    assert torch.equal(model.of_all(many), model.of_all(TOY.slots).repeat(times, 1))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("sd", "bias"), [(50.0, 0.0), (0.0, 1e6), (0.0, -1e6), (1e6, 0.0)])
@pytest.mark.parametrize("severity", [1e-9, 1.0, 2000.0])
def test_it_stays_a_propensity_at_any_size(kind: type[Noisy], sd: float, bias: float, severity: float) -> None:
    theta = kind(TOY.world.with_severity(severity), sd=sd, bias=bias).of_all(TOY.slots)
    assert ((theta > 0) & (theta <= 1)).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sd": -0.1}, r"noisy-temporal\.sd: out of range: found -0\.1, expected 0 or more"),
        ({"sd": float("nan")}, r"noisy-temporal\.sd"),
        ({"bias": float("inf")}, r"noisy-temporal\.bias"),
        ({"seed": -1}, r"noisy-temporal\.seed"),
        ({"seed": 0.5}, r"noisy-temporal\.seed: .* expected a whole number"),
        ({"noise": 1.0}, "expected one of sd, bias, seed"),
    ],
)
def test_what_is_out_of_range_is_said(options: dict[str, object], told: str) -> None:
    with pytest.raises(UnveilError, match=told):
        build("noisy-temporal", options, TOY.train, world=TOY.world)


def test_without_a_world_there_is_no_truth_to_disturb() -> None:
    with pytest.raises(UnveilError, match="'noisy-static' needs a world whose exposure is known"):
        build("noisy-static", {}, TOY.train)
