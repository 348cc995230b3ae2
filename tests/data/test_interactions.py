import numpy as np
import polars as pl
import pytest
from hypothesis import given

from tests.data.logs import any_log, log_of
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

ROWS = [("b", "x", 2), ("a", "y", 1), ("b", "y", 2), ("b", "x", 1)]


def test_dense_indices_follow_sorted_ids() -> None:
    log = log_of(ROWS)
    assert log.user.tolist() == [1, 0, 1, 1]
    assert log.item.tolist() == [0, 1, 1, 0]
    assert len(log) == 4
    assert repr(log) == "Interactions(4 events, 2 users, 2 items with time)"


def test_order_is_by_user_then_time_then_file() -> None:
    assert log_of(ROWS).order().tolist() == [1, 3, 0, 2]


def test_order_without_a_clock_is_file_order() -> None:
    log = Interactions.from_frame(pl.DataFrame({"user": ["b", "a", "b"], "item": ["x", "y", "z"]}))
    assert log.order().tolist() == [1, 0, 2]


@given(any_log())
def test_order_is_the_stable_sort(log: Interactions) -> None:
    assert log.time is not None
    expected = sorted(range(len(log)), key=lambda row: (log.user[row], log.time[row]))  # type: ignore[index]
    assert log.order().tolist() == expected


@given(any_log())
def test_frame_and_back(log: Interactions) -> None:
    assert Interactions.from_frame(log.to_frame()) == log


def test_arrays_are_read_only() -> None:
    log = log_of(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        log.user[0] = 7


def test_where_keeps_vocabularies_and_compact_shrinks_them() -> None:
    log = log_of(ROWS, rating=[1.0, 2.0, 3.0, 4.0])
    only_b = log.where(log.user == 1)
    assert len(only_b.users) == 2
    assert only_b.rating is not None
    assert only_b.rating.tolist() == [1, 3, 4]
    small = only_b.compact()
    assert list(small.users.ids) == ["b"]
    assert small.to_frame().equals(only_b.to_frame())


def test_clicks_and_skips_are_apart() -> None:
    log = log_of(ROWS, clicked=[True, False, True, False])
    assert log.interacted().to_frame()["item"].to_list() == ["x", "y"]
    assert log.skipped().to_frame()["user"].to_list() == ["a", "b"]
    assert len(log_of(ROWS).skipped()) == 0


def test_fingerprint_sees_content_and_columns() -> None:
    log = log_of(ROWS)
    assert log.fingerprint() == log_of(ROWS).fingerprint()
    assert log.fingerprint() != log_of(ROWS[::-1]).fingerprint()
    assert log.fingerprint() != log_of(ROWS, step=np.arange(4).tolist()).fingerprint()
    renamed = log_of([(user, item.upper(), time) for user, item, time in ROWS])
    assert log.fingerprint() != renamed.fingerprint()


def test_columns_of_unequal_length_are_refused() -> None:
    log = log_of(ROWS)
    with pytest.raises(ValueError, match="rating has 1 rows"):
        Interactions(log.user, log.item, log.users, log.items, rating=np.ones(1, np.float32))


def test_empty_cells_in_a_whole_number_column_are_refused() -> None:
    with pytest.raises(UnveilError, match="step: empty cells"):
        log_of(ROWS, step=[0, 1, None, 2])


def test_within_what_was_taken_by_hand() -> None:
    # b took nothing; z was shown and left by all.
    rows = [("a", "x", 1), ("a", "z", 1), ("b", "x", 1), ("c", "y", 1), ("c", "x", 2)]
    log = log_of(rows, clicked=[True, False, False, True, False]).within_interacted()
    assert list(log.to_frame().select("user", "item", "clicked").iter_rows()) == [
        ("a", "x", True),
        ("c", "y", True),
        ("c", "x", False),
    ]
    assert (list(log.users.ids), list(log.items.ids)) == (["a", "c"], ["x", "y"])
