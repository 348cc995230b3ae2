"""Popularity: the paper's counts by hand, by brute force, and what smoothing must keep."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.on_disk import many_events, on_disk, peak_of
from tests.data.ragged import any_sequences, sequences_of
from unveil.data import indexing, interactions
from unveil.data.batches import ClozeTask
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import Slots
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError
from unveil.propensity.popularity import StaticPopularity, TemporalPopularity, kernel

V = 5
# Steps 3, 4, 5: users end at step 5.
BY_HAND = sequences_of([[0, 1, 2], [1, 2], [2], []], V, first_step=3)


def at(item: list[int], step: list[int]) -> Slots:
    return Slots(torch.zeros(len(item), dtype=torch.int64), torch.tensor(item), torch.tensor(step))


def test_static_popularity_by_hand() -> None:
    theta = StaticPopularity().fit(BY_HAND)(at([0, 1, 2], [5, 5, 5]))
    assert theta.tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6])


def test_temporal_popularity_by_hand() -> None:
    theta = TemporalPopularity().fit(BY_HAND)(at([0, 1, 2], [3, 4, 5]))
    assert theta.tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6])


def test_what_never_occurs_gets_the_estimate_of_the_rarest_that_does() -> None:
    assert StaticPopularity().fit(BY_HAND)(at([3], [5])).tolist() == pytest.approx([1 / 6])
    assert TemporalPopularity().fit(BY_HAND)(at([2, 0], [3, 5])).tolist() == pytest.approx([1 / 6, 1 / 6])


def test_add_one_by_hand() -> None:
    assert StaticPopularity(add=1).fit(BY_HAND)(at([2, 3], [5, 5])).tolist() == pytest.approx([4 / 11, 1 / 11])
    theta = TemporalPopularity(add=1).fit(BY_HAND)(at([2, 2], [5, 3]))
    assert theta.tolist() == pytest.approx([4 / 21, 1 / 21])  # 6 events and 3 steps × 5 items


def test_only_the_window_of_the_model_is_counted() -> None:
    assert StaticPopularity(window=2).fit(BY_HAND)(at([1, 2], [5, 5])).tolist() == pytest.approx([2 / 5, 3 / 5])
    assert TemporalPopularity(window=1).fit(BY_HAND)(at([2], [5])).tolist() == [1.0]


def test_a_step_that_does_not_occur_is_read_at_the_nearest_that_does() -> None:
    theta = TemporalPopularity().fit(BY_HAND)
    assert theta(at([0, 2], [0, 9])).tolist() == theta(at([0, 2], [3, 5])).tolist()


def test_neighbouring_steps_by_hand() -> None:
    # Heights 1 and 1/2. Item 0 once at step 3, the first: 2/3 stay, 1/3 goes to step 4.
    # Item 1 twice at step 4: half stays, a quarter goes either way.
    theta = TemporalPopularity(half_width=1).fit(BY_HAND)
    expected = [2 / 3, 1 / 3, 2 / 4, 2 / 2, 2 / 4, 3 * 1 / 3, 3 * 2 / 3]
    found = theta(at([0, 0, 1, 1, 1, 2, 2], [3, 4, 3, 4, 5, 4, 5]))
    assert found.tolist() == pytest.approx([count / 6 for count in expected])


@given(st.integers(1, 12), st.integers(0, 15))
def test_the_kernel_loses_nothing_and_reaches_no_further_than_it_says(steps: int, half_width: int) -> None:
    K_TT = kernel(steps, half_width).toarray()
    np.testing.assert_allclose(K_TT.sum(0), 1)
    distance_TT = np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
    assert ((K_TT > 0) == (distance_TT <= half_width)).all()
    for t in range(steps):  # falls with the distance
        assert (np.diff(K_TT[t:, t]) <= 0).all()


def every_cell(train: Sequences) -> Slots:
    steps = range(int(train.step_N.min()), int(train.step_N.max()) + 1)
    return at([i for _ in steps for i in range(V)], [t for t in steps for _ in range(V)])


@given(any_sequences(V), st.integers(1, 9))
def test_counts_by_brute_force(train: Sequences, window: int) -> None:
    recent = train.recent(window)
    count = Counter(zip(recent.item_N.tolist(), recent.step_N.tolist(), strict=True))
    slots = ClozeTask(train, window, 4, 0.5).slots
    theta_M = TemporalPopularity(window).fit(train)(slots)
    keys = zip(slots.item_M.tolist(), slots.step_M.tolist(), strict=True)
    assert theta_M.tolist() == pytest.approx([count[key] / len(recent) for key in keys])


@given(any_sequences(V), st.integers(0, 6))
def test_smoothing_moves_mass_and_makes_none(train: Sequences, half_width: int) -> None:
    model, cells = TemporalPopularity(half_width=half_width).fit(train), every_cell(train)
    theta_M = model(cells).double()
    floor = theta_M.min()
    seen_M = torch.from_numpy(np.asarray(model._theta_TV.toarray()).ravel() > 0)
    assert theta_M[seen_M].sum().item() == pytest.approx(1, abs=1e-5)
    assert (theta_M[~seen_M] == floor).all()


@given(any_sequences(V), st.integers(0, 4), st.floats(0.1, 3.0))
def test_smoothed_and_added_to_everything_sums_to_one(train: Sequences, half_width: int, add: float) -> None:
    theta_M = TemporalPopularity(add=add, half_width=half_width).fit(train)(every_cell(train))
    assert theta_M.double().sum().item() == pytest.approx(1, abs=1e-5)
    theta_V = StaticPopularity(add=add).fit(train)(at(list(range(V)), [0] * V))
    assert theta_V.double().sum().item() == pytest.approx(1, abs=1e-5)


@given(any_sequences(V), st.integers(1, 9), st.integers(0, 3))
def test_static_is_the_sum_of_temporal_over_the_steps(train: Sequences, window: int, half_width: int) -> None:
    temporal = TemporalPopularity(window, half_width=half_width).fit(train)
    static = StaticPopularity(window).fit(train)
    seen = np.flatnonzero(np.bincount(train.recent(window).item_N, minlength=V))
    total_V = np.asarray(temporal._theta_TV.sum(0)).ravel()[seen]
    np.testing.assert_allclose(static(at(seen.tolist(), [0] * len(seen))).numpy(), total_V, rtol=1e-5)


@given(any_sequences(V), st.integers(0, 3))
def test_held_out_events_are_not_looked_at(train: Sequences, half_width: int) -> None:
    before = train.cut(np.zeros(train.n_users, np.int64), np.maximum(train.length_U - 1, 0))
    if not len(before):
        return
    other = Sequences(**{**vars(train), "item_N": _last_item_changed(train)})
    before_other = other.cut(np.zeros(train.n_users, np.int64), np.maximum(train.length_U - 1, 0))
    slots = every_cell(before)
    for model in (StaticPopularity(), TemporalPopularity(half_width=half_width)):
        assert torch.equal(model.fit(before)(slots), model.fit(before_other)(slots))


def _last_item_changed(train: Sequences) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    item_N = train.item_N.copy()
    last = train.offset_U1[1:][train.length_U > 0] - 1
    item_N[last] = (item_N[last] + 1) % V
    return item_N


def test_settings_out_of_range_and_nothing_to_count() -> None:
    with pytest.raises(UnveilError, match="window: out of range"):
        StaticPopularity(window=0)
    with pytest.raises(UnveilError, match="add: out of range"):
        StaticPopularity(add=-1.0)
    with pytest.raises(UnveilError, match="half_width: out of range"):
        TemporalPopularity(half_width=-1)
    with pytest.raises(UnveilError, match="the training part has no events"):
        StaticPopularity().fit(sequences_of([[]], V))


def test_ml_100k(shared_data: Path) -> None:
    train = leave_one_out(Sequences.of(Interactions.read(shared_data / "ml-100k" / "u.data"))).train
    slots = ClozeTask(train, 100, 64, 0.2).slots
    theta_M = TemporalPopularity(window=100).fit(train)(slots)
    count_M = theta_M.double() * len(slots)
    torch.testing.assert_close(count_M, count_M.round(), rtol=0, atol=1e-3)
    assert count_M.min().item() == pytest.approx(1)
    assert TemporalPopularity(window=100).fit(train).of_all(slots.part(0, 300)).shape == (300, train.n_items)


@pytest.mark.parametrize("window", [None, 30])
@pytest.mark.parametrize("half_width", [0, 2])
def test_histories_on_the_disk_are_counted_the_same_a_block_at_a_time(
    window: int | None, half_width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = many_events(users=1000)
    train, model = on_disk(memory, tmp_path).recent(150), TemporalPopularity(window, half_width=half_width)
    expected = TemporalPopularity(window, half_width=half_width).fit(memory.recent(150))
    monkeypatch.setattr(interactions, "BLOCK", 1 << 12)
    monkeypatch.setattr(indexing, "_BLOCK", 1 << 12)
    # The result has 7,500 cells; a number for each of 150,000 events would be 1.2 MB, and there were five.
    assert peak_of(lambda: model.fit(train)) < 1_000_000
    assert (model._first, model._floor) == (expected._first, expected._floor)
    assert np.array_equal(model._cell_C, expected._cell_C)
    assert np.array_equal(model._theta_TV.data, expected._theta_TV.data)
    assert not {"item_N", "step_N"} & vars(train).keys()  # what a cut is asked for it keeps
