import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.logs import any_log, log_of
from unveil.data.interactions import Interactions, Sequences
from unveil.errors import UnveilError

ROWS = [("b", "x", 2), ("a", "y", 1), ("b", "y", 2), ("b", "x", 1)]


def test_histories_in_time_order_with_steps_aligned_at_the_end() -> None:
    sequences = Sequences.of(log_of(ROWS))
    assert sequences.offset_U1.tolist() == [0, 1, 4]
    assert sequences.item_N.tolist() == [1, 0, 0, 1]
    assert sequences.step_N.tolist() == [2, 0, 1, 2]
    assert sequences.event_N.tolist() == [1, 3, 0, 2]
    assert sequences.user_N.tolist() == [0, 1, 1, 1]
    assert sequences.n_steps == 3
    assert sequences.history(1).tolist() == [0, 0, 1]


def test_steps_of_the_log_are_kept() -> None:
    sequences = Sequences.of(log_of(ROWS, step=[4, 7, 9, 0]))
    assert sequences.step_N.tolist() == [7, 0, 4, 9]
    assert sequences.n_steps == 10


def test_negative_steps_are_refused() -> None:
    with pytest.raises(UnveilError, match="found -1, expected steps counted from 0"):
        Sequences.of(log_of(ROWS, step=[4, 7, 9, -1]))


def test_what_was_left_is_no_part_of_a_history() -> None:
    sequences = Sequences.of(log_of(ROWS, clicked=[True, False, False, True]))
    assert sequences.length_U.tolist() == [0, 2]
    assert sequences.event_N.tolist() == [3, 0]


def test_a_cut_keeps_every_events_own_step() -> None:
    sequences = Sequences.of(log_of(ROWS))
    cut = sequences.cut(np.array([0, 1]), np.array([1, 2]))
    assert cut.item_N.tolist() == [1, 0]
    assert cut.step_N.tolist() == [2, 1]
    assert cut.offset_U1.tolist() == [0, 1, 2]
    assert cut.n_steps == 3


@given(any_log(), st.integers(0, 6))
def test_recent_is_the_tail_of_each_history(log: Interactions, length: int) -> None:
    sequences = Sequences.of(log)
    recent = sequences.recent(length)
    for user in range(sequences.n_users):
        whole = sequences.history(user).tolist()
        assert recent.history(user).tolist() == whole[max(0, len(whole) - length) :]


@given(any_log(), st.data())
def test_cut_against_slices(log: Interactions, data: st.DataObject) -> None:
    sequences = Sequences.of(log)
    bounds = [(data.draw(st.integers(0, n)), data.draw(st.integers(0, n))) for n in sequences.length_U]
    start, stop = np.array(bounds).T
    cut = sequences.cut(start, stop)
    for user, (first, last) in enumerate(bounds):
        assert cut.history(user).tolist() == sequences.history(user)[first:last].tolist()


@given(any_log())
def test_every_event_carries_its_own_user_item_and_step(log: Interactions) -> None:
    sequences = Sequences.of(log)
    assert np.array_equal(log.user[sequences.event_N], sequences.user_N)
    assert np.array_equal(log.item[sequences.event_N], sequences.item_N)
    last = sequences.offset_U1[1:] - 1
    assert (sequences.step_N[last] == sequences.n_steps - 1).all()
    inside = np.diff(sequences.user_N) == 0
    assert (np.diff(sequences.step_N)[inside] == 1).all()
