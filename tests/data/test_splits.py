from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.logs import any_log, log_of
from unveil.data.interactions import Interactions, Sequences
from unveil.data.splits import EvalCases, Targets, leave_one_out, temporal_split
from unveil.errors import UnveilError

ROWS = [("a", "p", 1), ("a", "q", 2), ("a", "r", 3), ("a", "s", 4), ("b", "p", 1), ("b", "q", 9)]


def rows(cases: EvalCases) -> list[tuple[int, ...]]:
    columns = (cases.user_C, cases.item_C, cases.step_C, cases.seen_C)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_leave_one_out_by_hand() -> None:
    split = leave_one_out(Sequences.of(log_of(ROWS)))
    assert split.train.item_N.tolist() == [0, 1, 0, 1]  # b is too short to hold anything out
    assert split.train.step_N.tolist() == [0, 1, 2, 3]
    assert rows(split.valid) == [(0, 2, 2, 2)]  # user a, item r, step 2, two events seen
    assert rows(split.test) == [(0, 3, 3, 3)]  # its context includes the validation item
    assert split.train_only == 1


def test_all_too_short() -> None:
    with pytest.raises(UnveilError, match=r"too short .*: found 2, expected at least 3 events"):
        leave_one_out(Sequences.of(log_of(ROWS[4:])))


@given(any_log())
def test_leave_one_out_partitions_every_history(log: Interactions) -> None:
    sequences = Sequences.of(log)
    if sequences.length_U.max() < 3:
        return
    split = leave_one_out(sequences)
    for user in range(sequences.n_users):
        held = [case[1] for cases in (split.valid, split.test) for case in rows(cases) if case[0] == user]
        assert split.train.history(user).tolist() + held == sequences.history(user).tolist()
    for cases in (split.valid, split.test):
        at = sequences.offset_U1[cases.user_C] + cases.seen_C
        assert np.array_equal(cases.step_C, sequences.step_N[at])
        assert cases.event_C is not None
        assert np.array_equal(log.item[cases.event_C], cases.item_C)
        assert np.array_equal(log.user[cases.event_C], cases.user_C)


def test_temporal_split_by_hand() -> None:
    split = temporal_split(Sequences.of(log_of(ROWS)), valid=0.4, test=0.7)
    # Times in order 1 1 2 3 4 9: the cuts fall on the events at places 2 and 4, times 2 and 4.
    assert split.train.item_N.tolist() == [0, 0]
    assert rows(split.valid) == [(0, 2, 2, 2)]  # a's last event before the second cut
    assert rows(split.test) == [(0, 3, 3, 3), (1, 1, 3, 1)]
    assert "1970-01-01" in split.rule


@pytest.mark.parametrize(
    ("targets", "expected"), [("first", [1]), ("last", [2]), ("all", [1, 2])], ids=["first", "last", "all"]
)
def test_which_events_after_a_cut_are_cases(targets: Targets, expected: list[int]) -> None:
    split = temporal_split(Sequences.of(log_of(ROWS)), valid=0.4, test=0.7, targets=targets)
    assert split.valid.item_C.tolist() == expected


def test_cuts_as_dates() -> None:
    day = 86_400_000_000
    log = log_of([("a", item, place * day) for place, item in enumerate("pqrs")])
    split = temporal_split(Sequences.of(log), valid=datetime(1970, 1, 3), test=datetime(1970, 1, 4, tzinfo=UTC))
    assert split.train.item_N.tolist() == [0, 1]
    assert (split.valid.item_C.tolist(), split.test.item_C.tolist()) == ([2], [3])


@given(any_log(), st.sampled_from(["first", "last", "all"]))
def test_nothing_trained_on_is_later_than_a_case(log: Interactions, targets: Targets) -> None:
    sequences = Sequences.of(log)
    try:
        split = temporal_split(sequences, valid=0.5, test=0.8, targets=targets)
    except UnveilError:
        return
    assert split.train.time_N is not None
    assert sequences.time_N is not None
    for cases in (split.valid, split.test):
        time_C = sequences.time_N[sequences.offset_U1[cases.user_C] + cases.seen_C]
        assert (time_C > split.train.time_N.max(initial=-1)).all()
        assert (cases.seen_C > 0).all()


def test_empty_parts_are_refused() -> None:
    with pytest.raises(UnveilError, match="leave one of train, validation and test empty"):
        temporal_split(Sequences.of(log_of(ROWS)), valid=0.8, test=0.5)
    with pytest.raises(UnveilError, match="expected a share between 0 and 1"):
        temporal_split(Sequences.of(log_of(ROWS)), valid=0.8, test=1.5)


def test_no_clock_no_temporal_split() -> None:
    log = Interactions.from_frame(pl.DataFrame({"user": ["b", "a", "b"], "item": ["x", "y", "z"]}))
    with pytest.raises(UnveilError, match="an order only"):
        temporal_split(Sequences.of(log))


def test_a_split_says_what_it_is_in_a_line() -> None:
    split = leave_one_out(Sequences.of(log_of(ROWS)))
    assert str(split) == "4 events to train on, 1 event to validate on, 1 event to test on"
    rule = "leave-one-out; users with fewer than 3 events are for training only"
    assert repr(split) == f"Split({split}; {rule}; 1 user for training only)"
    assert repr(split.test) == "EvalCases(1 case)"
    assert repr(split.whole) == "Sequences(6 events of 2 users, 4 items, T = 4)"
    assert repr(Sequences.of(log_of(ROWS[:1]))) == "Sequences(1 event of 1 user, 1 item, T = 1)"
