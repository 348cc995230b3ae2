"""Sampled softmaxes: who is drawn and how often, what the sample stands for, and where the slope tends to."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.data.ragged import sequences_of
from tests.estimators.test_losses import parts
from tests.estimators.toys import Toy, random_world
from unveil.data.slots import Slots
from unveil.errors import UnveilError
from unveil.estimators.base import Estimator, Sample, Sampler, Signal, build, cloze_risk, sampled_loss, theta_of_some
from unveil.estimators.inverse import weight_diagnostics
from unveil.propensity.known import KnownTemporal, Logged
from unveil.propensity.popularity import TemporalPopularity

TOY = Toy.drawn(random_world(users=30))
V = TOY.world.n_items


def made(name: str, **options: object) -> Estimator:
    return build(name, options, propensity=KnownTemporal(TOY.world), train=TOY.train)


def in_lot(slots: Slots, *lot: int) -> Slots:
    return Slots(slots.user_M, slots.item_M, slots.step_M, slots.event_M, lot=lot)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=40), st.integers(1, 50), st.floats(0, 1))
def test_chances_are_as_many_as_are_drawn_and_rise_with_the_counts(count: list[int], n: int, power: float) -> None:
    chance_V = Sampler.by_count(np.array(count), n, power).chance_V
    assert chance_V.sum() == pytest.approx(min(n, len(count)))
    assert ((chance_V > 0) & (chance_V <= 1)).all()
    assert (np.diff(chance_V[np.argsort(count, kind="stable")]) >= -1e-12).all()


def test_chances_by_hand() -> None:
    # Shares 1, 1, 2, 12 of two items: 12/16 · 2 > 1 is certain; the other one is shared 1 : 1 : 2.
    np.testing.assert_allclose(Sampler.by_count(np.array([0, 0, 1, 11]), 2, 1.0).chance_V, [0.25, 0.25, 0.5, 1.0])


def test_items_are_drawn_as_often_as_their_chance_says() -> None:
    sampler, draws = Sampler.by_count(np.arange(12) ** 2, 5, 0.75), 4000
    drawn = [sampler.draw((1, 2, nth)) for nth in range(draws)]
    assert all(len(item_K) == len(set(item_K)) == 5 for item_K in drawn)
    share_V = np.bincount(np.concatenate(drawn), minlength=12) / draws
    spread_V = np.sqrt(sampler.chance_V * (1 - sampler.chance_V) / draws)
    assert (np.abs(share_V - sampler.chance_V) <= 5 * spread_V).all()


def test_the_draw_is_the_lots_alone() -> None:
    estimator = made("naive-sampled", negatives=3)
    one, same, other = (estimator(in_lot(TOY.slots, *lot)).sample for lot in ((1, 2, 3), (1, 2, 3), (1, 2, 9)))
    assert one is not None
    assert same is not None
    assert other is not None
    assert torch.equal(one.item_K, same.item_K)
    others = [estimator(in_lot(TOY.slots, 1, 2, nth)).sample for nth in range(20)]
    assert len({tuple(each.item_K.tolist()) for each in others if each is not None}) > 5


def test_the_loss_by_hand() -> None:
    # Target 0 with logit log 2; drawn are 0 (left out, it is there already) and 2 with logit log 3 and π = ½.
    h_MD, table_VD = torch.ones(1, 1), torch.tensor([[2.0], [7.0], [3.0]]).log()
    sample = Sample(torch.tensor([0, 2]), torch.tensor([[0.0, math.log(2)]]), torch.zeros(1))
    loss = sampled_loss(h_MD, table_VD, torch.zeros(3), torch.tensor([0]), torch.tensor([5.0]), sample)
    assert loss.item() == pytest.approx(5 * math.log((2 + 3 * 2) / 2))


@pytest.mark.parametrize(("name", "strength"), [("naive-sampled", 0.0), ("corrected-sampled", 0.7)])
def test_the_offsets_by_hand(name: str, strength: float) -> None:
    """Of what is drawn strength · log θ − log π, of the target, which is there for sure, strength · log θ alone."""
    # Shares 1, 1, 2, 2, 2, 4, 20 of three items: the last is certain; the other two are shared among 12.
    train, chance_V = sequences_of([[2, 3, 4, 5, 5, 5] + [6] * 19], V), np.array([1, 1, 2, 2, 2, 4, 6]) / 6
    options = {"negatives": 3, "power": 1.0, **({"strength": strength} if strength else {})}
    estimator = build(name, options, propensity=KnownTemporal(TOY.world), train=train)
    slots, met = TOY.slots.part(0, 9), set()
    log_MV = strength * np.log(TOY.world.exposure(slots.user_M.numpy(), slots.step_M.numpy()))
    for nth in range(20):
        sample = estimator(in_lot(slots, 1, 2, nth)).sample
        assert sample is not None
        item_K = sample.item_K.numpy()
        expected_MK = log_MV[:, item_K] - np.log(chance_V[item_K])
        np.testing.assert_allclose(sample.offset_MK.expand(9, -1).numpy(), expected_MK, atol=1e-5)
        np.testing.assert_allclose(sample.own_M.numpy(), log_MV[np.arange(9), slots.item_M.numpy()], atol=1e-5)
        met |= set(item_K.tolist())
    assert met == set(range(V))


def test_a_target_that_is_all_that_was_drawn_teaches_nothing() -> None:
    p = parts(1, 3, 2)
    sample = Sample(torch.tensor([1]), torch.zeros(1, 1), torch.zeros(1))
    loss = sampled_loss(*p, torch.tensor([1]), torch.ones(1), sample)
    assert loss.item() == 0
    assert not any(slope.any() for slope in torch.autograd.grad(loss, p))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 99), st.sampled_from([("naive-sampled", "naive"), ("corrected-sampled", "corrected")]))
def test_with_all_items_drawn_it_is_the_exact_loss(seed: int, names: tuple[str, str]) -> None:
    slots = TOY.slots.part(0, 20)
    p, sampled = parts(20, V, 3, seed), made(names[0], negatives=V)(slots)
    exact = build(names[1], {}, propensity=KnownTemporal(TOY.world))(slots)
    mine, theirs = cloze_risk(*p, sampled), cloze_risk(*p, exact)
    torch.testing.assert_close(mine, theirs)
    for one, other in zip(torch.autograd.grad(mine, p), torch.autograd.grad(theirs, p), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def slope(f_V: Tensor, sample: Sample, target: int) -> Tensor:
    f_V = f_V.clone().requires_grad_()
    nothing, one = torch.zeros(1, 1, dtype=f_V.dtype), torch.ones(1, dtype=f_V.dtype)
    loss = sampled_loss(nothing, torch.zeros(len(f_V), 1, dtype=f_V.dtype), f_V, torch.tensor([target]), one, sample)
    return torch.autograd.grad(loss, f_V)[0]


def mean_slope(f_V: Tensor, offset_V: Tensor, target: int, sampler: Sampler, draws: int) -> Tensor:
    total_V = torch.zeros_like(f_V)
    for nth in range(draws):
        item_K = torch.from_numpy(sampler.draw((nth,)))
        offset_K = offset_V[item_K] - torch.from_numpy(sampler.chance_V).log()[item_K]
        total_V += slope(f_V, Sample(item_K, offset_K[None], offset_V[target][None]), target)
    return total_V / draws


def test_the_mean_slope_tends_to_that_over_all_items() -> None:
    """log θ of exposure and −log π of the draw in one offset: both corrections at once."""
    rng = np.random.default_rng(0)
    f_V, count_V = torch.from_numpy(rng.normal(size=30)), rng.integers(0, 50, 30)
    offset_V, target = torch.from_numpy(np.log(rng.uniform(0.05, 1, 30))), 4
    exact_V = torch.softmax(f_V + offset_V, 0)
    exact_V[target] -= 1
    error = [
        float((mean_slope(f_V, offset_V, target, Sampler.by_count(count_V, n, 0.75), 600) - exact_V).abs().sum())
        for n in (2, 8, 20)
    ]
    assert error[0] > 2 * error[1] > 3 * error[2]
    assert error[2] < 0.06  # of a slope whose parts sum to about 2
    uncorrected_V = mean_slope(
        f_V, torch.zeros(30, dtype=torch.float64), target, Sampler.by_count(count_V, 20, 0.75), 300
    )
    assert float((uncorrected_V - exact_V).abs().sum()) > 0.2


def test_the_sample_stands_for_the_rest_without_bias() -> None:
    """E[Ẑ] = Z: the mean of Σ_{j drawn} x_j / π_j is Σ_j x_j, whoever the target is."""
    rng = np.random.default_rng(1)
    x_V, sampler = np.exp(rng.normal(size=20)), Sampler.by_count(rng.integers(0, 9, 20), 6, 1.0)
    total_R = np.array([(x_V / sampler.chance_V)[sampler.draw((nth,))].sum() for nth in range(4000)])
    assert abs(total_R.mean() - x_V.sum()) < 4 * total_R.std() / np.sqrt(len(total_R))


@pytest.mark.parametrize("name", ["naive-sampled", "corrected-sampled"])
def test_the_parts_of_a_batch_add_up_to_the_whole(name: str) -> None:
    slots, estimator = in_lot(TOY.slots.part(0, 9), 1, 1, 1), made(name, negatives=3)
    h_MD, table_VD, bias_V = parts(9, V, 3)
    whole = cloze_risk(h_MD, table_VD, bias_V, estimator(slots), normaliser=9.0)
    pieces = [
        cloze_risk(h_MD[start:stop], table_VD, bias_V, estimator(slots.part(start, stop)), normaliser=9.0)
        for start, stop in ((0, 4), (4, 9))
    ]
    torch.testing.assert_close(whole, pieces[0] + pieces[1])


@pytest.mark.parametrize("theta", [KnownTemporal(TOY.world), TemporalPopularity().fit(TOY.train)])
def test_some_items_propensities_are_the_same_however_they_are_asked_for(
    theta: KnownTemporal | TemporalPopularity,
) -> None:
    item_K = torch.tensor([1, 4, 6])
    all_at_once = theta_of_some(theta, TOY.slots, item_K, V)
    pair_by_pair = theta_of_some(theta, TOY.slots, item_K, 10**6)
    assert all_at_once.shape == (len(TOY.slots), 3)
    torch.testing.assert_close(all_at_once, pair_by_pair)


def test_a_log_knows_the_propensity_of_no_item_but_the_taken_one() -> None:
    logged = build("corrected-sampled", {}, propensity=Logged(np.full(len(TOY.log), 0.5)), train=TOY.train)
    with pytest.raises(UnveilError, match="not of every item"):
        logged(TOY.slots)


def test_nothing_is_weighted_so_there_is_nothing_to_diagnose() -> None:
    assert weight_diagnostics(made("corrected-sampled"), TOY.slots) is None
    assert weight_diagnostics(made("naive-sampled"), TOY.slots) is None


def test_signals_move_with_their_sample() -> None:
    signal: Signal = made("corrected-sampled")(TOY.slots).to("meta")
    assert signal.sample is not None
    assert signal.sample.item_K.device.type == signal.sample.own_M.device.type == "meta"


@pytest.mark.parametrize("options", [{"negatives": 0}, {"power": 1.5}, {"power": -0.1}, {"clip": 0.0}])
def test_out_of_range(options: dict[str, object]) -> None:
    with pytest.raises(UnveilError, match="out of range"):
        made("corrected-sampled", **options)


def test_the_training_part_is_asked_for() -> None:
    with pytest.raises(UnveilError, match="'naive-sampled' learns from the training part, and none is given"):
        build("naive-sampled", {})
