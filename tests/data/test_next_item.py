"""The next-item task: every event asked for, from those before it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.ragged import any_sequences, sequences_of
from tests.data.test_batches import MASK, PAD, V, random_sequences
from unveil.data.batches import NextItemTask
from unveil.data.interactions import Sequences
from unveil.errors import UnveilError


def test_by_hand() -> None:
    """Users (0 1 2), nothing, (4): MASK 0 1 asks for 0 1 2, and MASK alone for 4."""
    (batch,) = NextItemTask(sequences_of([[0, 1, 2], [], [4]], V), 3, 5).epoch(1)
    found = {
        tuple(row): [int(item) for item, b in zip(batch.slots.item_M, batch.where[0], strict=True) if b == n]
        for n, row in enumerate(batch.token_BL.tolist())
    }
    assert found == {(MASK, 0, 1): [0, 1, 2], (PAD, PAD, MASK): [4]}


def test_longer_histories_keep_their_end() -> None:
    (batch,) = NextItemTask(sequences_of([[0, 1, 2, 3]], V), 2, 5).epoch(1)
    assert batch.token_BL.tolist() == [[MASK, 2]]
    assert batch.slots.item_M.tolist() == [2, 3]


@given(any_sequences(), st.integers(1, 8), st.integers(1, 5), st.booleans(), st.integers(0, 3))
def test_every_recent_event_is_asked_for_once_from_those_before_it(
    train: Sequences, length: int, batch_size: int, bucket: bool, epoch: int
) -> None:
    task = NextItemTask(train, length, batch_size, seed=1, bucket=bucket)
    batches = list(task.epoch(epoch))
    assert len(batches) == len(task)
    asked = []
    for batch in batches:
        columns = (batch.slots.user_M, batch.slots.item_M, batch.slots.step_M, *batch.where)
        for user, item, step, b, column in zip(*(c.tolist() for c in columns), strict=True):
            read = [token for token in batch.token_BL[b, : column + 1].tolist() if token != PAD]
            history = train.history(user)[-length:].tolist()
            place = len(read) - 1
            assert read == [MASK, *history[:place]]
            assert history[place] == item
            asked.append((user, place, step))
    whole = train.recent(length)
    expected = [
        (user, place, int(whole.step_N[whole.offset_U1[user] + place]))
        for user in range(train.n_users)
        for place in range(int(whole.length_U[user]))
    ]
    assert sorted(asked) == expected


def test_batches_depend_on_seed_and_epoch_alone() -> None:
    train = random_sequences(200)
    first, again, other = (list(NextItemTask(train, 8, 16, seed=s).epoch(1)) for s in (0, 0, 1))
    assert all(torch.equal(a.token_BL, b.token_BL) for a, b in zip(first, again, strict=True))
    assert any(a.token_BL.shape != b.token_BL.shape for a, b in zip(first, other, strict=True))


def test_a_batch_knows_its_lot() -> None:
    task = NextItemTask(sequences_of([[0, 1, 2]] * 4, V), 3, batch_size=2, seed=4)
    assert [batch.slots.lot for batch in task.epoch(7)] == [(4, 7, 0), (4, 7, 1)]


def test_the_expected_number_of_slots() -> None:
    task = NextItemTask(random_sequences(640), 10, 64)
    assert task.slots_per_batch == pytest.approx(np.mean([len(batch.slots) for batch in task.epoch(1)]))


@pytest.mark.parametrize(("length", "batch_size"), [(0, 1), (1, 0)])
def test_out_of_range(length: int, batch_size: int) -> None:
    with pytest.raises(UnveilError, match="at least 1"):
        NextItemTask(random_sequences(3), length, batch_size)
