from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.logs import any_log, log_of
from unveil.data.filters import Filters, Repeats
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

# Dropping x (1 event) leaves b with 1 event; dropping b then leaves y with 1.
CHAIN = [("a", "z", 1), ("a", "z", 2), ("a", "y", 3), ("b", "y", 1), ("b", "x", 2), ("a", "z", 4)]


def pairs(log: Interactions) -> list[tuple[str, str]]:
    return list(log.to_frame().select("user", "item").iter_rows())


def test_nothing_is_dropped_by_default() -> None:
    log = log_of(CHAIN)
    assert Filters()(log) is log


def test_one_pass_drops_items_then_users() -> None:
    assert pairs(Filters(min_item=2, min_user=2)(log_of(CHAIN))) == [("a", "z"), ("a", "z"), ("a", "y"), ("a", "z")]


def test_iterated_goes_to_the_fixed_point() -> None:
    assert pairs(Filters(min_item=2, min_user=2, iterate=True)(log_of(CHAIN))) == [("a", "z")] * 3


def test_vocabularies_shrink() -> None:
    left = Filters(min_item=2, min_user=2, iterate=True)(log_of(CHAIN))
    assert (list(left.users.ids), list(left.items.ids)) == (["a"], ["z"])


def test_what_is_rated_too_low_was_shown_all_the_same() -> None:
    nan, clicked = float("nan"), [True, True, True, False, True, False]
    log = log_of(CHAIN, rating=[1.0, 5.0, 3.0, nan, 2.0, nan], clicked=clicked)
    left = Filters(min_rating=3)(log)
    assert pairs(left) == pairs(log)
    assert left.clicked is not None
    assert left.clicked.tolist() == [False, True, True, False, False, False]


def test_minimum_rating() -> None:
    log = log_of(CHAIN, rating=[1.0, 5.0, 3.0, 3.5, 2.0, 4.0])
    assert pairs(Filters(min_rating=3.5)(log)) == [("a", "z"), ("b", "y"), ("a", "z")]
    with pytest.raises(UnveilError, match="no rating column"):
        Filters(min_rating=3)(log_of(CHAIN))


def test_repeats_by_time_not_by_row() -> None:
    log = log_of([("a", "z", 9), ("a", "z", 2), ("a", "y", 3), ("a", "z", 9)])
    assert Filters(repeats="first")(log).to_frame()["time"].to_list() == [2, 3]
    last = Filters(repeats="last")(log)
    assert last.to_frame()["time"].to_list() == [3, 9]


def test_only_what_was_taken_counts() -> None:
    shown = log_of(
        [("a", "x", 1), ("a", "x", 2), ("a", "y", 3), ("b", "y", 1), ("b", "x", 2)],
        clicked=[True, False, True, True, True],
    )
    left = Filters(min_item=2)(shown)
    assert len(left) == 5  # x was clicked twice and y twice: the skip of x stays beside them
    assert len(Filters(min_user=3)(shown)) == 0
    assert len(Filters(repeats="first")(shown).skipped()) == 1


@given(any_log(), st.integers(0, 4), st.integers(0, 4))
def test_fixed_point_is_the_largest_core(log: Interactions, min_item: int, min_user: int) -> None:
    rows = pairs(log)
    while True:
        items, users = Counter(item for _, item in rows), Counter(user for user, _ in rows)
        kept = [row for row in rows if items[row[1]] >= min_item and users[row[0]] >= min_user]
        if kept == rows:
            break
        rows = kept
    assert pairs(Filters(min_item=min_item, min_user=min_user, iterate=True)(log)) == rows


@given(any_log(), st.sampled_from(["first", "last"]))
def test_without_repeats_each_pair_stands_once(log: Interactions, repeats: Repeats) -> None:
    left = pairs(Filters(repeats=repeats)(log))
    assert len(left) == len(set(left))
    assert set(left) == set(pairs(log))
