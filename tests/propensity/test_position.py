"""θ by position: recovered from a log in which the good is placed on top, on the training part alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.propensity.examination.placed import drawn, log_of
from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out, temporal_split
from unveil.errors import UnveilError
from unveil.propensity.build import build
from unveil.propensity.caution import caution
from unveil.propensity.impressions.training import training_impressions
from unveil.propensity.position import Position

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
    assert caution(model)[0].startswith("nobody recorded exposure: position estimates it, assuming that a click")
    assert "chance" not in caution(model)[0]
    blind = drawn(np.ones(3), liked(5), 3000, 30, np.random.default_rng(1), strength=0.0)
    doubtful = Position(blind).fit(leave_one_out(Sequences.of(blind)).train)
    assert caution(doubtful)[0].endswith(f"Here positions may differ by chance alone (p = {doubtful.alike:.2g}).")


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
        with pytest.raises(UnveilError, match=r"what users took and not what they left.*--clicked-col"):
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
