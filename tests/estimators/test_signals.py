"""Each estimator's targets and weights, by hand and against each other."""

from weakref import ref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators import base
from unveil.estimators.base import Signal, build
from unveil.estimators.inverse import IPS, ITPS, weight_diagnostics
from unveil.estimators.naive import Ideal, Naive
from unveil.propensity.known import KnownStatic, KnownTemporal, Logged
from unveil.propensity.popularity import StaticPopularity, TemporalPopularity
from unveil.propensity.weights import diagnose

SLOTS = Slots(torch.tensor([0, 0, 1]), torch.tensor([2, 1, 2]), torch.tensor([4, 5, 5]), torch.tensor([2, 0, 1]))


def logged(*theta: float) -> Logged:
    return Logged(np.array(theta))


def test_naive_takes_the_log_at_its_word() -> None:
    signal = Naive()(SLOTS)
    assert signal.target_M.tolist() == [2, 1, 2]
    assert signal.weight_M.tolist() == [1.0, 1.0, 1.0]
    assert signal.offset_MV is None


def test_itps_divides_by_the_propensity_of_the_slots_own_event() -> None:
    signal = ITPS(logged(0.5, 0.1, 0.25))(SLOTS)
    assert signal.target_M.tolist() == [2, 1, 2]
    assert signal.weight_M.tolist() == pytest.approx([4.0, 2.0, 10.0])


def test_clip_and_exponent() -> None:
    assert ITPS(logged(0.5, 0.1, 0.25), clip=0.2)(SLOTS).weight_M.tolist() == pytest.approx([4.0, 2.0, 5.0])
    halved = ITPS(logged(0.5, 0.1, 0.25), clip=0.16, exponent=0.5)
    assert halved(SLOTS).weight_M.tolist() == pytest.approx([2.0, 2**0.5, 2.5])
    assert halved.ceiling == pytest.approx(2.5)
    assert ITPS(logged(0.5, 0.1, 0.25), exponent=0.0)(SLOTS).weight_M.tolist() == [1.0, 1.0, 1.0]
    level = weight_diagnostics(ITPS(logged(0.5, 0.1, 0.25), clip=0.2, exponent=0.0), SLOTS)
    assert level is not None
    assert level.clipped == 0


def test_ips_averages_over_the_steps_of_the_world() -> None:
    world = random_world()
    signal = IPS(KnownStatic(world))(SLOTS)
    for m in range(len(SLOTS)):
        user, item = int(SLOTS.user_M[m]), int(SLOTS.item_M[m])
        theta = [world.exposure_of(np.array([user]), np.array([item]), np.array([t]))[0] for t in range(9)]
        assert float(signal.weight_M[m]) == pytest.approx(1 / np.mean(theta), rel=1e-5)


@given(st.integers(0, 20))
def test_ips_is_itps_where_exposure_does_not_change_with_the_step(seed: int) -> None:
    toy = Toy.drawn(random_world(seed=seed, moving=False))
    static, temporal = IPS(KnownStatic(toy.world))(toy.slots), ITPS(KnownTemporal(toy.world))(toy.slots)
    torch.testing.assert_close(static.weight_M, temporal.weight_M)
    assert torch.equal(static.target_M, temporal.target_M)


def test_itps_is_naive_where_everything_is_seen() -> None:
    signal, naive = ITPS(logged(1.0, 1.0, 1.0))(SLOTS), Naive()(SLOTS)
    assert torch.equal(signal.weight_M, naive.weight_M)
    assert torch.equal(signal.target_M, naive.target_M)


def test_ideal_is_the_best_item_at_the_slots_own_user_and_step() -> None:
    world = random_world()
    ideal = Ideal(world)
    for _ in range(2):  # looked up, then remembered
        signal = ideal(SLOTS)
        for m in range(len(SLOTS)):
            gamma_V = world.relevance(SLOTS.user_M[m : m + 1].numpy(), SLOTS.step_M[m : m + 1].numpy())[0]
            assert int(signal.target_M[m]) == gamma_V.argmax()
            assert float(signal.weight_M[m]) == pytest.approx(gamma_V.max())


def test_estimators_are_built_by_name_from_what_they_need() -> None:
    toy = Toy.drawn(random_world())
    static, temporal = StaticPopularity().fit(toy.train), TemporalPopularity().fit(toy.train)
    assert isinstance(build("naive", {}), Naive)
    ips = build("ips", {"clip": 0.01, "self_normalised": True}, propensity=static)
    assert isinstance(ips, IPS)
    assert (ips.clip, ips.exponent, ips.self_normalised) == (0.01, 1.0, True)
    assert isinstance(build("itps", {"exponent": 1}, propensity=temporal), ITPS)
    assert isinstance(build("ideal", {}, world=toy.world), Ideal)


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("ips", {}, "'ips' needs a static propensity, and none is given. Name one, such as 'recorded-static'"),
        ("itps", {}, "'itps' needs a temporal propensity"),
        ("ideal", {}, "'ideal' needs a world whose truth is known"),
        ("itsp", {}, "unknown estimator: found 'itsp', expected one of .* Did you mean 'itps'"),
        ("naive", {"clip": 0.1}, "unknown option of the estimator 'naive': found 'clip', expected none"),
    ],
)
def test_what_is_missing_is_said(name: str, options: dict[str, object], told: str) -> None:
    with pytest.raises(UnveilError, match=told):
        build(name, options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"clipp": 0.1}, "unknown option of the estimator 'itps': found 'clipp'.* Did you mean 'clip'"),
        ({"clip": "much"}, "itps.clip: not a valid value: found 'much', expected a number"),
        ({"self_normalised": 1}, "itps.self_normalised: not a valid value: found 1, expected true or false"),
        ({"clip": 1.5}, "itps.clip: out of range: found 1.5, expected between 0 and 1"),
        ({"exponent": -1.0}, "itps.exponent: out of range"),
        ({"propensity": 1}, "unknown option"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], told: str) -> None:
    with pytest.raises(UnveilError, match=told):
        build("itps", options, propensity=logged(0.5))


def test_a_propensity_of_the_wrong_kind_is_refused() -> None:
    toy = Toy.drawn(random_world())
    with pytest.raises(UnveilError, match="'ips' needs a static propensity, and 'logged' is temporal"):
        IPS(logged(0.5))
    with pytest.raises(UnveilError, match="Use a temporal one, such as 'popularity-temporal'"):
        ITPS(StaticPopularity().fit(toy.train))


def test_weights_are_diagnosed_over_all_slots() -> None:
    toy = Toy.drawn(random_world(users=40))
    found = weight_diagnostics(ITPS(KnownTemporal(toy.world), clip=0.3), toy.slots)
    theta_M = KnownTemporal(toy.world)(toy.slots)
    assert found is not None
    assert found.slots == len(toy.slots)
    assert 0 < found.clipped < 1
    assert found.clipped == pytest.approx(float((theta_M <= 0.3).double().mean()))
    assert weight_diagnostics(Naive(), toy.slots) is None
    assert weight_diagnostics(Ideal(toy.world), toy.slots) is None


class Watched(ITPS):
    """Counts how many of the weights that it gave are still held when more are asked for."""

    def __call__(self, slots: Slots) -> Signal:
        given = vars(self).setdefault("given", [])
        vars(self)["most"] = max(vars(self).get("most", 0), sum(weight() is not None for weight in given))
        signal = super().__call__(slots)
        given.append(ref(signal.weight_M))
        return signal


def test_no_more_weights_are_held_than_those_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BLOCK", 7)
    toy = Toy.drawn(random_world(users=40))
    watched, plain = (kind(KnownTemporal(toy.world), clip=0.3) for kind in (Watched, ITPS))
    found = weight_diagnostics(watched, toy.slots)
    assert found is not None
    assert len(vars(watched)["given"]) > 10
    assert vars(watched)["most"] <= 1  # the last block's, while the next is made
    assert vars(found) == pytest.approx(vars(diagnose(plain(toy.slots).weight_M, plain.ceiling)))
