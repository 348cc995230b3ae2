import numpy as np
import pytest

from unveil.data.indexing import Vocabulary
from unveil.errors import UnveilError
from unveil.studies.fig1 import MOST, Group, extremes, groups_of

TITLES = [
    "Godfather, The (1972)",
    "Godfather: Part III, The (1990)",
    "Godfather: Part II, The (1974)",
    "Misérables, Les (1995)",
    "Back to the Future (1985)",
]
ITEMS = Vocabulary(["1", "2", "3", "4", "5"])
COUNT = np.array([9, 8, 7, 6, 5])


def test_items_by_a_part_of_their_title_in_the_order_of_years() -> None:
    assert groups_of("godfather;back to", ITEMS, TITLES, COUNT) == [
        Group("godfather", (0, 2, 1)),
        Group("back to", (4,)),
    ]


def test_items_by_id_in_the_order_asked_for() -> None:
    assert groups_of("5, 1 , Misér", ITEMS, TITLES, COUNT) == [Group("5, 1, Misér", (4, 0, 3))]


def test_a_pattern_that_matches_nothing_gets_the_nearest_titles() -> None:
    with pytest.raises(UnveilError, match=r"--items: no item has this.*found 'Godfahter'.*nearest titles: Godfather"):
        groups_of("Godfahter", ITEMS, TITLES, COUNT)
    with pytest.raises(UnveilError, match=r"Look titles up"):
        groups_of("zzzzzz", ITEMS, TITLES, COUNT)


def test_no_more_boxes_than_can_be_read_and_none_without_events() -> None:
    items = Vocabulary([f"{n:02d}" for n in range(20)])
    count = np.arange(20)
    (group,) = groups_of("film", items, [f"film {n:02d}" for n in range(20)], count)
    assert group.items == tuple(range(20 - MOST, 20))
    (group,) = groups_of("film 0", items, [f"film {n:02d}" for n in range(20)], count)
    assert 0 not in group.items


def test_without_a_wish_the_earliest_and_the_latest() -> None:
    z_V, tested_V = np.array([3.0, -9.0, 0.0, 5.0, -1.0, 99.0]), np.array([True] * 5 + [False])
    assert extremes(z_V, tested_V, 2) == [Group("Earliest", (1, 4)), Group("Latest", (3, 0))]


def test_items_that_were_not_tested_are_neither_early_nor_late() -> None:
    z_V, tested_V = np.array([0.0, 3.0, 0.0, 5.0]), np.array([False, True, False, True])
    assert extremes(z_V, tested_V, 2) == [Group("Earliest", (1, 3)), Group("Latest", (3, 1))]


@pytest.mark.parametrize("asked", ["5", ","])
def test_items_that_nobody_took_cannot_be_drawn(asked: str) -> None:
    with pytest.raises(UnveilError, match="--items: nobody interacted with any of these items: found"):
        groups_of(asked, ITEMS, TITLES, np.array([9, 8, 7, 6, 0]))
