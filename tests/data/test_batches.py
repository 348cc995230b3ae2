"""The Cloze task: what is hidden, what is shown, and that each slot keeps its own user, item, step and event."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.ragged import any_sequences, sequences_of
from unveil.data.batches import Batch, ClozeTask, NextItemTask
from unveil.data.interactions import Interactions, Sequences
from unveil.data.slots import histories, mask_token, n_tokens, pad_token, tokens_of
from unveil.data.splits import leave_one_out
from unveil.errors import UnveilError

V = 5
PAD, MASK = pad_token(V), mask_token(V)

probability = st.floats(0.05, 1.0)
share = st.sampled_from([0.0, 0.3, 1.0])


def slot_set(batches: list[Batch]) -> set[tuple[int, ...]]:
    columns = [(b.slots.user_M, b.slots.item_M, b.slots.step_M, b.slots.event_M) for b in batches]
    return {tuple(int(x) for x in slot) for c in columns for slot in zip(*(x for x in c if x is not None), strict=True)}


def filled_in(batch: Batch) -> torch.Tensor:
    token_BL = batch.token_BL.clone()
    token_BL[batch.where] = batch.slots.item_M
    return token_BL


def test_tokens_are_items_then_pad_then_mask() -> None:
    assert (PAD, MASK, n_tokens(V)) == (5, 6, 7)


def test_a_row_by_hand() -> None:
    train = sequences_of([[0, 1, 2, 3]], V, first_step=10)
    (batch,) = ClozeTask(train, length=3, batch_size=4, mask_probability=1.0).epoch(1)
    assert batch.token_BL.tolist() == [[MASK, MASK, MASK]]
    assert [x.tolist() for x in batch.where] == [[0, 0, 0], [0, 1, 2]]
    assert batch.slots.item_M.tolist() == [1, 2, 3]
    assert batch.slots.step_M.tolist() == [11, 12, 13]  # the events' own, whatever column they stand in
    assert batch.slots.user_M.tolist() == [0, 0, 0]
    assert batch.slots.event_M is not None
    assert batch.slots.event_M.tolist() == [2, 1, 0]


def test_only_the_last_event_is_hidden_where_the_row_asks_what_comes_next() -> None:
    train = sequences_of([[0, 1, 2], [3], [], [4, 4]], V)
    (batch,) = ClozeTask(train, 3, 8, mask_probability=0.9, last_share=1.0).epoch(7)
    rows = {tuple(row) for row in batch.token_BL.tolist()}
    assert rows == {(0, 1, MASK), (PAD, PAD, MASK), (PAD, 4, MASK)}
    assert batch.where[1].tolist() == [2, 2, 2]


@given(any_sequences(), st.integers(1, 8), st.integers(1, 5), probability, share, st.booleans(), st.integers(0, 3))
def test_every_row_is_a_recent_history_with_its_hidden_items_in_the_slots(
    train: Sequences, length: int, batch_size: int, rho: float, last: float, bucket: bool, epoch: int
) -> None:
    task = ClozeTask(train, length, batch_size, rho, last, seed=1, bucket=bucket)
    batches = list(task.epoch(epoch))
    assert len(batches) == len(task)
    rows = []
    for batch in batches:
        assert batch.token_BL.dtype == torch.int64
        assert bucket or len(batch.token_BL) <= batch_size
        b_M, l_M = batch.where
        assert torch.equal(torch.stack([b_M, l_M]), (batch.token_BL == MASK).nonzero().T)  # row-major, and all of them
        assert set(b_M.tolist()) == set(range(len(batch.token_BL)))  # at least one a row
        rows += [[token for token in row if token != PAD] for row in filled_in(batch).tolist()]
        for row in batch.token_BL:
            assert not (row == PAD)[(row != PAD).nonzero()[0] :].any()  # padding on the left only
    expected = [train.history(u)[-length:].tolist() for u in range(train.n_users) if train.length_U[u]]
    assert sorted(rows) == sorted(expected)


@given(any_sequences(), st.integers(1, 8), st.integers(1, 5), st.booleans(), st.booleans())
def test_windows_are_whole_histories_in_pieces_from_the_end(
    train: Sequences, length: int, batch_size: int, bucket: bool, cloze: bool
) -> None:
    how: dict[str, bool] = {"bucket": bucket, "windows": True}
    task = ClozeTask(train, length, batch_size, 0.4, **how) if cloze else NextItemTask(train, length, batch_size, **how)
    batches = list(task.epoch(1))
    assert len(batches) == len(task)
    rows = [[token for token in row if token != PAD] for batch in batches for row in filled_in(batch).tolist()]
    if not cloze:  # each item stands in the place of the one before it
        rows = [
            batch.slots.item_M[batch.where[0] == b].tolist() for batch in batches for b in range(len(batch.token_BL))
        ]
    ends = [(u, end) for u in range(train.n_users) for end in range(int(train.length_U[u]), 0, -length)]
    assert sorted(rows) == sorted(train.history(u)[max(0, end - length) : end].tolist() for u, end in ends)
    events = {tuple(map(int, event)) for event in zip(*_columns(task), strict=True)}
    columns = (train.user_N, train.item_N, train.step_N, train.event_N)
    assert events == {tuple(map(int, event)) for event in zip(*columns, strict=True)}
    assert slot_set(batches) <= events
    assert cloze or slot_set(batches) == events


@given(any_sequences(), st.integers(1, 8), probability, share)
def test_slots_are_events_of_the_training_part(train: Sequences, length: int, rho: float, last: float) -> None:
    task = ClozeTask(train, length, 3, rho, last)
    columns = (train.user_N, train.item_N, train.step_N, train.event_N)
    events = {tuple(int(x) for x in event) for event in zip(*columns, strict=True)}
    hidden = slot_set(list(task.epoch(1)))
    can_be_hidden = {tuple(int(x) for x in slot) for slot in zip(*_columns(task), strict=True)}
    assert hidden <= can_be_hidden <= events
    assert len(can_be_hidden) == np.minimum(train.length_U, length).sum()


def _columns(task: ClozeTask | NextItemTask) -> list[torch.Tensor]:
    slots = task.slots
    assert slots.event_M is not None
    return [slots.user_M, slots.item_M, slots.step_M, slots.event_M]


@given(any_sequences(), st.integers(1, 6), probability, share, st.booleans())
def test_what_is_hidden_against_all_events_drawn_at_once(
    train: Sequences, length: int, rho: float, last: float, always: bool
) -> None:
    """The task draws and keeps its bits in blocks; drawn in one piece they are the same."""
    recent, rng = train.recent(length), np.random.default_rng([5, 2])
    length_R = recent.length_U[recent.length_U > 0]
    stop_R = np.cumsum(length_R)
    hidden_N = rng.random(len(recent), np.float32) < rho
    last_R = rng.random(len(length_R)) < last
    chosen_R = stop_R - length_R + rng.integers(length_R)
    for start, stop, only, chosen in zip(stop_R - length_R, stop_R, last_R, chosen_R, strict=True):
        if only:
            hidden_N[start:stop] = False
            hidden_N[stop - 1] = True
        elif always and not hidden_N[start:stop].any():
            hidden_N[chosen] = True
    task = ClozeTask(train, length, 3, rho, last, seed=5, always_mask=always)
    events = torch.cat([batch.slots.event_M for batch in task.epoch(2) if batch.slots.event_M is not None])
    assert sorted(events.tolist()) == sorted(recent.event_N[hidden_N].tolist())


@given(any_sequences(), st.integers(0, 5))
def test_an_epoch_is_a_function_of_seed_and_number_alone(train: Sequences, epoch: int) -> None:
    task = ClozeTask(train, 6, 2, 0.4, 0.2, seed=3)
    list(task.epoch(epoch + 1))  # what was asked before makes no difference
    again = ClozeTask(train, 6, 2, 0.4, 0.2, seed=3)
    for one, other in zip(task.epoch(epoch), again.epoch(epoch), strict=True):
        assert torch.equal(one.token_BL, other.token_BL)
        assert torch.equal(one.slots.step_M, other.slots.step_M)


def test_seeds_and_epochs_differ() -> None:
    train = random_sequences(200)
    drawn = [slot_set(list(ClozeTask(train, 8, 16, 0.3, seed=s).epoch(n))) for s, n in [(0, 1), (0, 2), (1, 1)]]
    assert drawn[0] != drawn[1]
    assert drawn[0] != drawn[2]


@given(any_sequences(), st.integers(1, 4))
def test_batches_of_similar_length_hide_the_same_events(train: Sequences, batch_size: int) -> None:
    bucketed, plain = (ClozeTask(train, 6, batch_size, 0.4, 0.2, seed=3, bucket=on) for on in (True, False))
    assert slot_set(list(bucketed.epoch(2))) == slot_set(list(plain.epoch(2)))


def test_batches_of_similar_length_are_cropped_and_come_in_no_order() -> None:
    task = ClozeTask(random_sequences(400), 40, 8, 0.3)
    widths = [batch.token_BL.shape[1] for batch in task.epoch(1)]
    assert widths != sorted(widths)
    assert len(set(widths)) > 10
    filled = sum(int((batch.token_BL != PAD).sum()) for batch in task.epoch(1))
    assert sum(batch.token_BL.numel() for batch in task.epoch(1)) < 1.1 * filled
    assert {b.token_BL.shape[1] for b in ClozeTask(random_sequences(400), 40, 8, 0.3, bucket=False).epoch(1)} == {40}


def test_a_share_rho_of_the_events_is_hidden() -> None:
    train = random_sequences(3000)
    task = ClozeTask(train, 40, 64, 0.2, always_mask=False)
    drawn = sum(len(batch.slots) for batch in task.epoch(1))
    n = len(task.slots)
    assert abs(drawn - 0.2 * n) < 5 * np.sqrt(n * 0.2 * 0.8)


def test_a_row_in_which_nothing_was_drawn_has_one_event_hidden_or_none() -> None:
    train = sequences_of([[0, 1, 2]] * 4000, V)
    rare = 1e-9
    batches = list(ClozeTask(train, 3, 500, rare).epoch(1))
    count = torch.bincount(torch.cat([batch.where[1] for batch in batches]), minlength=3)
    assert int(count.sum()) == 4000
    assert (count - 4000 / 3).abs().max() < 150  # uniform: five standard deviations
    assert sum(len(batch.slots) for batch in ClozeTask(train, 3, 500, rare, always_mask=False).epoch(1)) == 0


@pytest.mark.parametrize(("always", "last"), [(True, 0.0), (True, 0.4), (False, 0.0), (False, 0.4)])
def test_the_expected_number_of_slots(always: bool, last: float) -> None:
    task = ClozeTask(random_sequences(2048), 10, 64, 0.15, last, always_mask=always)
    mean = np.mean([len(batch.slots) for epoch in range(8) for batch in task.epoch(epoch)])
    assert task.slots_per_batch == pytest.approx(mean, rel=0.02)


def test_a_batch_knows_its_lot_and_so_does_every_part_of_it() -> None:
    task = ClozeTask(sequences_of([[0, 1, 2]] * 6, V), 3, batch_size=2, mask_probability=0.5, seed=4)
    slots = [batch.slots for batch in task.epoch(7)]
    assert [each.lot for each in slots] == [(4, 7, 0), (4, 7, 1), (4, 7, 2)]
    assert slots[1].part(0, 1).lot == slots[1].to("cpu").lot == (4, 7, 1)
    assert task.slots.lot == ()


def test_batches_move() -> None:
    (batch,) = ClozeTask(sequences_of([[0, 1]], V), 2, 1, 1.0).epoch(0)
    moved = batch.to("meta")
    tensors = [moved.token_BL, *moved.where, moved.slots.user_M, moved.slots.item_M, moved.slots.step_M]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert len(moved.slots) == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"length": 0}, "length: out of range: found 0"),
        ({"batch_size": 0}, "batch_size"),
        ({"mask_probability": 0.0}, "mask_probability: out of range: found 0.0, expected above 0, at most 1"),
        ({"mask_probability": 1.1}, "mask_probability"),
        ({"last_share": -0.1}, "last_share"),
    ],
)
def test_settings_out_of_range_are_named(changed: dict[str, float], message: str) -> None:
    settings = {"length": 3, "batch_size": 2, "mask_probability": 0.2, "last_share": 0.0} | changed
    with pytest.raises(UnveilError, match=message):
        ClozeTask(
            sequences_of([[0]], V),
            int(settings["length"]),
            int(settings["batch_size"]),
            settings["mask_probability"],
            settings["last_share"],
        )


def test_a_training_part_without_events_is_refused() -> None:
    with pytest.raises(UnveilError, match="the training part has no events"):
        ClozeTask(sequences_of([[], []], V), 3, 2, 0.2)


def test_histories_by_hand() -> None:
    sequences = sequences_of([[0, 1, 2, 3], [4], []], V)
    user_B, seen_B = np.array([0, 0, 1, 2, 0]), np.array([4, 2, 1, 0, 0])
    assert histories(sequences, user_B, seen_B, length=4).tolist() == [
        [1, 2, 3, MASK],
        [PAD, 0, 1, MASK],
        [PAD, PAD, 4, MASK],
        [PAD, PAD, PAD, MASK],
        [PAD, PAD, PAD, MASK],
    ]
    assert histories(sequences, user_B[1:3], seen_B[1:3], length=4).tolist() == [[0, 1, MASK], [PAD, 4, MASK]]
    assert histories(sequences, user_B[3:], seen_B[3:], length=4).tolist() == [[MASK], [MASK]]
    assert histories(sequences, user_B[:1], seen_B[:1], length=1).tolist() == [[MASK]]


@given(any_sequences(), st.integers(1, 8))
def test_given_histories_are_asked_like_those_of_the_log(sequences: Sequences, length: int) -> None:
    users = range(sequences.n_users)
    expected = histories(sequences, np.array(users), sequences.length_U, length)
    assert torch.equal(tokens_of([sequences.history(u) for u in users], V, length), expected)


def test_no_histories_and_items_that_are_none() -> None:
    assert tokens_of([], V, 4).shape == (0, 1)
    for item in (-1, V):
        with pytest.raises(ValueError, match="are not within 0 to 4"):
            tokens_of([np.array([item])], V, 4)


def random_sequences(users: int) -> Sequences:
    rng = np.random.default_rng(0)
    return sequences_of([rng.integers(V, size=rng.integers(1, 41)).tolist() for _ in range(users)], V)


def test_the_last_hundred_ratings_of_ml_100k(shared_data: Path) -> None:
    train = leave_one_out(Sequences.of(Interactions.read(shared_data / "ml-100k" / "u.data"))).train
    task = ClozeTask(train, 100, 64, 0.2, 0.1)
    assert len(task.slots) == np.minimum(train.length_U, 100).sum()
    assert sum(len(batch.slots) for batch in task.epoch(1)) == pytest.approx(task.slots_per_batch * 943 / 64, rel=0.03)
