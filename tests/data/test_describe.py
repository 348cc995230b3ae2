from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.logs import any_log, log_of
from unveil.data.describe import Impressions, describe, gini, rows
from unveil.data.interactions import Interactions
from unveil.errors import UnveilError

SECOND = 1_000_000
ROWS = [("a", "p", 0), ("a", "q", SECOND), ("a", "p", SECOND), ("b", "p", 60 * SECOND)]


def test_by_hand() -> None:
    figures = describe(log_of(ROWS))
    assert (figures.users, figures.items, figures.interactions, figures.impressions) == (2, 2, 4, None)
    assert vars(figures.lengths) == {"shortest": 1, "median": 2, "mean": 2, "longest": 3}
    assert figures.sparsity == pytest.approx(1 - 3 / 4)
    assert (figures.start, figures.end) == ("1970-01-01 00:00:00", "1970-01-01 00:01:00")
    assert figures.ties is not None
    assert vars(figures.ties) == {"events": 2, "share": 0.5, "last": 1, "last_share": 0.5}
    assert figures.repeats == 1
    assert figures.skew.gini == pytest.approx(0.25)
    # Two items with 3 events and 1: a tenth of the items is a fifth of the first.
    assert (figures.skew.top_1_percent, figures.skew.top_10_percent) == pytest.approx((0.75 / 50, 0.75 / 5))
    assert (figures.skew.once, figures.too_short) == (1, 1)


def test_skips_are_counted_apart() -> None:
    figures = describe(log_of(ROWS, clicked=[True, False, True, True]))
    assert (figures.interactions, figures.items) == (3, 1)
    assert figures.impressions == Impressions(events=4, clicked=0.75, users=2, items=2)
    assert ("impressions", "4") in rows(figures)
    assert ("  users, items", "2, 2") in rows(figures)


def test_what_was_not_recorded_has_no_row() -> None:
    assert not [label for label, _ in rows(describe(log_of(ROWS))) if "impressions" in label]
    frame = log_of(ROWS).to_frame().drop("time")
    table = rows(describe(Interactions.from_frame(frame)))
    assert ("clock", "none: events have an order only") in table
    assert not [label for label, _ in table if "tied" in label or "UTC" in label]


def test_printed_it_is_a_table_and_in_short_a_line() -> None:
    figures = describe(log_of(ROWS))
    lines = str(figures).splitlines()
    assert [line.split() for line in lines[:2]] == [["users", "2"], ["items", "2"]]
    assert len({len(line) for line in lines}) == 1
    assert repr(figures) == "Description(4 interactions, 2 users, 2 items)"


def test_nothing_left() -> None:
    with pytest.raises(UnveilError, match="no interaction in the log"):
        describe(log_of(ROWS).where(np.zeros(4, bool)))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30).filter(any))
def test_gini_is_half_the_relative_mean_difference(counts: list[int]) -> None:
    array = np.array(counts)
    expected = np.abs(array[:, None] - array).mean() / (2 * array.mean())
    assert gini(array) == pytest.approx(expected)


@given(any_log())
def test_ties_against_counting(log: Interactions) -> None:
    assert log.time is not None
    moments = list(zip(log.user.tolist(), log.time.tolist(), strict=True))
    ties = describe(log).ties
    assert ties is not None
    assert ties.events == sum(moments.count(moment) > 1 for moment in moments)
    ends = {user: max(time for other, time in moments if other == user) for user, _ in moments}
    assert ties.last == sum(moments.count((user, time)) > 1 for user, time in ends.items())


@given(any_log())
def test_rows_are_the_same_whatever_is_left_out(log: Interactions) -> None:
    labels = [[label for label, _ in rows(describe(each))] for each in (log, log.where(np.arange(len(log)) < 1))]
    assert all(first == second for first, second in pairwise(labels))
