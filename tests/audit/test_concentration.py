"""The Lorenz curve and what is read off it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.logs import log_of
from unveil.audit.checks import POINTS, concentration
from unveil.data.describe import describe
from unveil.data.interactions import Sequences


def test_worked_out_by_hand() -> None:
    found = concentration(np.array([4, 0, 1, 1, 2]))  # 0: nobody took it, so it is no item here
    # Sorted 1 1 2 4: the curve is 0, 1/8, 2/8, 4/8, 1 at quarters.
    assert [found.lorenz[n] for n in (0, 25, 50, 75, 100)] == pytest.approx([0, 1 / 8, 2 / 8, 4 / 8, 1])
    assert found.head == pytest.approx({"1%": 0.02, "10%": 0.2, "20%": 0.4})  # a straight line within the last item
    assert found.half == 1
    assert found.half_share == 0.25
    # 1 − 2 × area = 1 − 2 × ¼ × (0/2 + 1/8 + 2/8 + 4/8 + 1/2) = 5/16.
    assert found.gini == pytest.approx(5 / 16)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=40).filter(any))
def test_against_brute_force(counts: list[int]) -> None:
    found = concentration(np.array(counts))
    falling = sorted((count for count in counts if count), reverse=True)
    total = sum(falling)
    assert found.half == next(n for n in range(1, len(falling) + 1) if sum(falling[:n]) * 2 >= total)
    pairs = sum(abs(a - b) for a in falling for b in falling)
    assert found.gini == pytest.approx(pairs / (2 * len(falling) * total))
    assert len(found.lorenz) == POINTS
    assert np.all(np.diff(found.lorenz) >= -1e-12)
    assert np.all(np.diff(found.lorenz, 2) >= -1e-9)  # least first: the curve only bends upwards
    assert found.head["1%"] <= found.head["10%"] <= found.head["20%"] <= 1


def test_the_head_is_what_the_description_of_the_log_says() -> None:
    log = log_of([("a", "p", 0), ("a", "q", 1), ("b", "p", 2), ("c", "p", 3), ("c", "r", 4)])
    told, found = describe(log).skew, concentration(Sequences.of(log).count_V)
    assert (told.gini, told.top_1_percent, told.top_10_percent) == (found.gini, found.head["1%"], found.head["10%"])


def test_one_item_has_everything_and_all_are_alike() -> None:
    assert concentration(np.array([7])).gini == 0
    alike = concentration(np.full(200, 3))
    assert alike.gini == pytest.approx(0)
    assert alike.head["10%"] == pytest.approx(0.1)
    assert alike.half == 100
