"""Examination of positions: the estimate by hand and in properties, and θ of a log's events by it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.propensity.placed import confounded, drawn, log_of, table
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.propensity.build import build, caveats
from unveil.propensity.impressions import training_impressions
from unveil.propensity.positions import Position, _Likelihood, _line_search, bootstrap, examination, p_equal

Floats = NDArray[np.float64]
NEXT_TO_NONE = 1e-9


def test_by_hand() -> None:
    """One item is taken at 20% and 10%, another at 40% and 20%: e is 1 : ½. Positions as such have 22% and 19%."""
    shown_VK, clicked_VK = np.array([[100.0, 100], [10, 1000]]), np.array([[20.0, 10], [4, 200]])
    np.testing.assert_allclose(
        examination(table(shown_VK, clicked_VK).informative(), NEXT_TO_NONE), [1, 0.5], rtol=1e-6
    )
    rate_K = clicked_VK.sum(0) / shown_VK.sum(0)
    assert rate_K[1] / rate_K[0] > 0.87


def test_the_added_item_by_hand() -> None:
    """Both items are alike, shown once everywhere: the shares of all clicks, 3 + ½ and 1 + ½, are e."""
    found_K = examination(table(np.ones((1, 2)), np.array([[3.0, 1]])).informative(), 0.5)
    np.testing.assert_allclose(found_K, [1, 1.5 / 3.5], rtol=1e-9)


def test_the_best_position_need_not_be_the_first_and_one_without_clicks_stays_above_nothing() -> None:
    found_K = examination(table(np.full((1, 3), 50.0), np.array([[10.0, 20, 0]])).informative(), 0.5)
    assert found_K[1] == 1
    assert 0 < found_K[2] < 0.05
    assert found_K[0] == pytest.approx(10.5 / 20.5, rel=0.05)


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 12))
@settings(max_examples=30)
def test_where_clicks_are_as_many_as_expected_e_is_found_exactly(seed: int, positions: int, items: int) -> None:
    """Whatever is placed where; and weighted by 1 / e they count what is liked, unbiased."""
    rng = np.random.default_rng(seed)
    e_K, r_V = rng.uniform(0.05, 1, positions), rng.uniform(0.01, 1, items)
    shown_VK = rng.integers(1, 1000, (items, positions)).astype(float)
    clicked_VK = shown_VK * e_K * r_V[:, None]
    found_K = examination(table(shown_VK, clicked_VK).informative(), NEXT_TO_NONE)
    np.testing.assert_allclose(found_K, e_K / e_K.max(), rtol=1e-5)
    mean_V = (clicked_VK / found_K).sum(1) / shown_VK.sum(1)
    np.testing.assert_allclose(mean_V, r_V * e_K.max(), rtol=1e-5)


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_no_step_leads_down_and_the_top_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    shown_VK = rng.integers(1, 30, (int(rng.integers(1, 9)), K)).astype(float)
    clicked_VK = np.floor(shown_VK * rng.random(shown_VK.shape) * rng.random(K))
    clicked_VK[0, 0] = 1.0
    likelihood = _Likelihood(table(shown_VK, clicked_VK).informative(), 0.5)
    alpha_K = rng.normal(scale=3, size=K)
    for _ in range(30):
        before = likelihood(alpha_K)
        gradient_K, information_KK = likelihood.slope(alpha_K)
        alpha_K = _line_search(likelihood, alpha_K, np.linalg.solve(information_KK, gradient_K))
        assert likelihood(alpha_K) >= before - 1e-9 * abs(before)
    found_K = examination(table(shown_VK, clicked_VK).informative(), 0.5)
    np.testing.assert_allclose(np.exp(alpha_K - alpha_K.max()), found_K, rtol=1e-5)


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_the_slope_is_that_of_the_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shown_VK = rng.integers(1, 30, (4, 3)).astype(float)
    likelihood = _Likelihood(table(shown_VK, np.floor(shown_VK / 2)).informative(), 0.5)
    alpha_K, h = rng.normal(size=3), 1e-5
    by_hand = [(likelihood(alpha_K + h * unit) - likelihood(alpha_K - h * unit)) / (2 * h) for unit in np.eye(3)]
    gradient_K, _ = likelihood.slope(alpha_K)
    np.testing.assert_allclose(gradient_K, by_hand, atol=1e-4)


def _em(shown_VK: Floats, clicked_VK: Floats, steps: int) -> Floats:
    """Expectation–maximisation of the clicks' own likelihood, r and e together, as it is written in textbooks."""
    e_K, r_V1, left_VK = np.full(shown_VK.shape[1], 0.5), np.full((len(shown_VK), 1), 0.3), shown_VK - clicked_VK
    for _ in range(steps):
        none_VK = 1 - e_K * r_V1 + 1e-12
        seen_VK, liked_VK = e_K * (1 - r_V1) / none_VK, r_V1 * (1 - e_K) / none_VK
        e_K = (clicked_VK + left_VK * seen_VK).sum(0) / shown_VK.sum(0)
        r_V1 = ((clicked_VK + left_VK * liked_VK).sum(1) / shown_VK.sum(1))[:, None]
    return np.asarray(e_K / e_K.max())


def _world(items: int, each: int, seed: int) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    e_K, r_V = np.array([1, 0.6, 0.3]), rng.beta(2, 3, items)
    chance_VK = confounded(r_V, 3, 6.0) * np.exp(2 * rng.normal(size=(items, 3)))  # and mostly at one place
    shown_VK = rng.multinomial(each, chance_VK / chance_VK.sum(1, keepdims=True)).astype(float)
    return e_K, shown_VK, rng.binomial(shown_VK.astype(int), r_V[:, None] * e_K).astype(float)


def test_where_items_are_shown_often_em_finds_the_same() -> None:
    e_K, shown_VK, clicked_VK = _world(40, 20_000, 0)
    found_K, em_K = examination(table(shown_VK, clicked_VK).informative(), 0.5), _em(shown_VK, clicked_VK, 600)
    np.testing.assert_allclose(found_K, em_K, rtol=0.01)
    np.testing.assert_allclose(found_K, e_K, rtol=0.02)


def test_where_items_are_seldom_shown_em_is_dragged_along_and_this_is_not() -> None:
    e_K, shown_VK, clicked_VK = _world(30_000, 3, 1)
    found_K, em_K = examination(table(shown_VK, clicked_VK).informative(), 0.5), _em(shown_VK, clicked_VK, 150)
    np.testing.assert_allclose(found_K, e_K, rtol=0.07)
    assert (em_K[1:] > 1.07 * e_K[1:]).all()


def test_what_cannot_be_told_is_said() -> None:
    alone = table(np.diag([5.0, 5]), np.diag([1.0, 2]))
    with pytest.raises(UnveilError, match=r"no item was shown at two positions: .* found '2 positions, 2 items'"):
        alone.informative()
    nothing = table(np.array([[5.0, 5, 0], [0, 0, 3]]), np.array([[0.0, 0, 0], [0, 0, 1]]))
    with pytest.raises(UnveilError, match="no item that was shown at two positions was ever clicked"):
        nothing.informative()
    for add in (0.0, -1.0, float("nan")):
        with pytest.raises(UnveilError, match=r"position\.add: out of range"):
            examination(table(np.ones((1, 2)), np.ones((1, 2))).informative(), add)


def test_positions_that_no_item_links_are_not_compared() -> None:
    """The first item links 1 and 2, the second 3 and 4; nothing links the two."""
    shown_VK = np.array([[9.0, 9, 0, 0, 0], [0, 0, 9, 9, 0], [0, 0, 0, 9, 9]])
    apart = table(shown_VK, np.array([[5.0, 2, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]])).informative()
    with pytest.raises(UnveilError, match=r"share no clicked item .* found 'position 3, 4'.*deepest"):
        apart.connected(np.array([True, True, True, True, False]))
    linked = apart.connected(np.array([True, True, False, False, False]))
    assert linked.position_K.tolist() == [1, 2]
    np.testing.assert_allclose(examination(linked, NEXT_TO_NONE), [1, 0.4], rtol=1e-6)
    chained = table(np.array([[9.0, 9, 0], [0, 9, 9]]), np.array([[8.0, 4, 0], [0, 4, 2]])).informative()
    np.testing.assert_allclose(
        examination(chained.connected(np.ones(3, bool)), NEXT_TO_NONE), [1, 0.5, 0.25], rtol=1e-6
    )


def test_positions_that_are_alike_pass_for_different_one_time_in_twenty() -> None:
    rng = np.random.default_rng(3)
    r_V = rng.uniform(0.002, 0.02, 30)
    shown_VK = rng.multinomial(600, confounded(r_V, 3, 60.0)).astype(float) + 1
    p = [p_equal(table(shown_VK, rng.poisson(shown_VK * r_V[:, None]).astype(float)).informative()) for _ in range(400)]
    share = np.mean(np.array(p) < 0.05)
    assert abs(share - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 400)
    unlike = rng.poisson(shown_VK * r_V[:, None] * np.array([1, 0.7, 0.4])).astype(float)
    assert p_equal(table(shown_VK, unlike).informative()) < 0.01


def test_that_positions_are_alike_by_hand() -> None:
    """8 and 2 clicks of one item shown equally often: (8 − 5)² / 2.5 = 3.6, the square of 1.897 deviations."""
    assert p_equal(table(np.full((1, 2), 20.0), np.array([[8.0, 2]])).informative()) == pytest.approx(0.05778, abs=1e-5)


def test_drawn_again_it_varies_as_anew() -> None:
    """The bootstrap's deviation of log e is that of logs drawn anew from the truth."""
    rng = np.random.default_rng(4)
    e_K, r_V = np.array([1, 0.5]), rng.uniform(0.02, 0.2, 20)
    shown_VK = rng.multinomial(1000, confounded(r_V, 2, 10.0)).astype(float)
    anew = [rng.binomial(shown_VK.astype(int), r_V[:, None] * e_K).astype(float) for _ in range(150)]
    true = np.std([np.log(examination(table(shown_VK, each).informative(), 0.5)[1]) for each in anew])
    again_DK = bootstrap(table(shown_VK, anew[0]).informative(), 0.5, 150, rng)
    assert np.std(np.log(again_DK[:, 1] / again_DK[:, 0])) == pytest.approx(true, rel=0.3)
    some = bootstrap(table(np.ones((1, 2)), np.ones((1, 2))).informative(), 0.5, 50, rng)
    assert ((some > 0) & (some <= 1)).all(), "also where a draw has no click, or nothing at all"


E_K = np.array([1, 0.7, 0.45, 0.2])


def liked(items: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.linspace(0.02, 0.6, items)


@pytest.fixture(scope="module")
def log() -> Interactions:
    """Many short histories: what the split takes away is a good part of each."""
    return drawn(E_K, liked(40), 120_000, 3000, np.random.default_rng(0))


def slots_of(train: Sequences) -> Slots:
    columns = (train.user_N, train.item_N, train.step_N, train.event_N)
    return Slots(*(torch.from_numpy(column.astype(np.int64)) for column in columns))


def deviations(log: Interactions, train: Sequences) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """About the standard deviation of log e_k / e_1: √(1 / clicks at k + 1 / clicks at 1)."""
    assert log.position is not None
    clicks_K = np.bincount(log.position[train.event_N])[1:]
    return np.asarray(np.sqrt(1 / clicks_K + 1 / clicks_K[0]))


@pytest.mark.parametrize("split", [leave_one_out, temporal_split])
def test_examination_is_recovered_where_what_is_liked_is_on_top(log: Interactions, split: object) -> None:
    assert callable(split)
    train = split(Sequences.of(log)).train
    model = Position(log).fit(train)
    found_K = np.array(list(model.examination.values()))
    assert list(model.examination) == [1, 2, 3, 4]
    assert (np.abs(np.log(found_K / E_K)) < 4 * deviations(log, train)).all()
    shown_N = training_impressions(log, train)
    assert log.position is not None
    assert log.clicked is not None
    rate_K = np.array([log.clicked[shown_N & (log.position == k)].mean() for k in (1, 2, 3, 4)])
    naive_K = rate_K / rate_K.max()
    assert (np.abs(np.log(naive_K / E_K))[1:] > 8 * deviations(log, train)[1:]).all(), "rates by position mislead"


def test_weighted_by_it_clicks_count_what_is_liked(log: Interactions) -> None:
    """Mean of clicks / e over an item's impressions, against r: on average over items within a few per cent."""
    train = leave_one_out(Sequences.of(log)).train
    shown_N = training_impressions(log, train)
    weight_M = 1 / Position(log).fit(train)(slots_of(train)).double().numpy()
    shown_V = np.bincount(log.item[shown_N], minlength=40)
    clicked_V = np.bincount(train.item_N, minlength=40)
    weighted_V = np.bincount(train.item_N, weights=weight_M, minlength=40)
    deviation_V = np.sqrt(np.bincount(train.item_N, weights=weight_M**2, minlength=40)) / shown_V
    assert (np.abs(weighted_V / shown_V - liked(40)) < 4 * deviation_V + 0.03 * liked(40)).all()
    assert (weighted_V / shown_V).mean() == pytest.approx(liked(40).mean(), rel=0.03)
    assert (clicked_V / shown_V).mean() < 0.8 * liked(40).mean(), "unweighted, positions are in the way"


def test_each_event_has_the_examination_of_its_own_position(log: Interactions) -> None:
    train = leave_one_out(Sequences.of(log)).train
    model = build("position", {}, train, log=log)
    assert isinstance(model, Position)
    assert log.position is not None
    theta_M = model(slots_of(train))
    expected = [model.examination[int(k)] for k in log.position[train.event_N]]
    torch.testing.assert_close(theta_M, torch.tensor(expected, dtype=torch.float32))
    assert caveats(model)[0].startswith("exposure was not recorded: position estimates it")
    assert "chance" not in caveats(model)[0]
    blind = drawn(np.ones(3), liked(5), 3000, 30, np.random.default_rng(1), strength=0.0)
    doubtful = Position(blind).fit(leave_one_out(Sequences.of(blind)).train)
    assert caveats(doubtful)[0].endswith(f"Here positions may differ by chance alone (p = {doubtful.p_equal:.2g}).")


def _history() -> Interactions:
    """User 0: skip, click, skip, click, skip, click, skip. User 1: two skips. Rows in the order of time."""
    user = np.array([0, 0, 0, 1, 0, 0, 0, 1, 0])
    clicked = np.array([False, True, False, False, True, False, True, False, False])
    return log_of(user, np.zeros(9, int), np.ones(9, int), clicked, (2, 1))


def test_what_is_left_before_anything_held_out_belongs_to_training() -> None:
    log = _history()
    train = leave_one_out(Sequences.of(log)).train  # holds out rows 4 and 6; one moment parts them from row 1
    assert training_impressions(log, train).tolist() == [True] * 4 + [False] * 5
    turned = replace(log, time=None)  # without a clock each user counts alone: user 1 has nothing held out
    assert np.flatnonzero(training_impressions(turned, train)).tolist() == [0, 1, 2, 3, 7]
    whole = Sequences.of(log)
    assert training_impressions(log, whole).all()
    seen = replace(log, exposed=np.arange(9) != 2)
    assert np.flatnonzero(training_impressions(seen, train)).tolist() == [0, 1, 3]


def test_nothing_that_is_held_out_matters(log: Interactions) -> None:
    """Spoil every row outside of the training part: nothing changes."""
    train = leave_one_out(Sequences.of(log)).train
    shown_N = training_impressions(log, train)
    assert log.position is not None
    spoilt = replace(log, position=np.where(shown_N, log.position, 9).astype(np.int32))
    assert Position(spoilt).fit(train).examination == Position(log).fit(train).examination


def test_deep_positions_can_be_one(log: Interactions) -> None:
    train = leave_one_out(Sequences.of(log)).train
    model = build("position", {"deepest": 3}, train, log=log)
    assert isinstance(model, Position)
    assert list(model.examination) == [1, 2, 3]
    assert 0.2 < model.examination[3] < 0.45
    assert len(torch.unique(model(slots_of(train)))) == 3


def test_what_is_missing_is_said(log: Interactions) -> None:
    train = leave_one_out(Sequences.of(log)).train
    with pytest.raises(UnveilError, match=r"'position' needs a log with a position column, .*--position-col"):
        build("position", {}, train, log=replace(log, position=None))
    with pytest.raises(UnveilError, match="'position' needs a log"):
        build("position", {}, train)
    for clicked in (None, np.ones(len(log), bool)):
        with pytest.raises(UnveilError, match=r"no impressions without a click.*--clicked-col"):
            build("position", {}, train, log=replace(log, clicked=clicked))
    with pytest.raises(UnveilError, match=r"position.deepest: out of range: found -1"):
        build("position", {"deepest": -1}, train, log=log)
    with pytest.raises(UnveilError, match=r"position.deepest: .* expected a whole number"):
        build("position", {"deepest": 1.5}, train, log=log)


def test_a_row_without_a_position_is_named(log: Interactions) -> None:
    train = leave_one_out(Sequences.of(log)).train
    assert log.position is not None
    position = log.position.copy()
    rows = np.flatnonzero(training_impressions(log, train))[[7, 9]]
    position[rows] = -1
    with pytest.raises(UnveilError, match=f"2 impressions, first row {rows[0] + 1} of the log: no position: found -1"):
        Position(replace(log, position=position)).fit(train)


def test_one_item_a_position_is_refused() -> None:
    user, item = np.repeat(np.arange(5), 8), np.tile(np.arange(4), 10)
    log = log_of(user, item, item + 1, np.arange(40) % 2 == 0, (5, 4))
    with pytest.raises(UnveilError, match="no item was shown at two positions"):
        Position(log).fit(leave_one_out(Sequences.of(log)).train)


def test_it_knows_events_of_its_log_at_positions_it_met(log: Interactions) -> None:
    train = leave_one_out(Sequences.of(log)).train
    model, slots = Position(log).fit(train), slots_of(train)
    with pytest.raises(UnveilError, match="not of every item"):
        model.of_all(slots)
    with pytest.raises(UnveilError, match="for events of the log only"):
        model(Slots(slots.user_M, slots.item_M, slots.step_M))
    assert log.position is not None
    model.log = replace(log, position=np.full_like(log.position, 9))
    with pytest.raises(UnveilError, match="nothing was shown at this position in the training part: found 9"):
        model(slots)
