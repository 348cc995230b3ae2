import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.runs.tune.claims import Record
from unveil.runs.tune.page import epsilon_squared, importances
from unveil.runs.tune.space import Choice, Range, Space


def record(entry: int, value: float | None, **settings: object) -> Record:
    return Record(entry, "failed" if value is None else "complete", settings, value)


def test_by_hand() -> None:
    # means 1 and 4; SS within 2 + 2 = 4, SS total 4 + 4 · 1.5² = 13, so (13 − 4 − 1 · 4 / 2) / 13
    assert epsilon_squared({"a": [0.0, 2.0], "b": [3.0, 5.0]}) == pytest.approx(7 / 13)


def test_a_setting_that_decides_everything_and_one_that_decides_nothing() -> None:
    assert epsilon_squared({"a": [1.0, 1.0], "b": [2.0, 2.0]}) == 1.0
    assert epsilon_squared({"a": [1.0, 2.0], "b": [1.0, 2.0]}) == 0.0


@pytest.mark.parametrize("members", [{}, {"a": [1.0], "b": [2.0]}, {"a": [1.0, 1.0], "b": [1.0]}])
def test_what_cannot_be_told(members: dict[str, list[float]]) -> None:
    assert epsilon_squared(members) is None


def test_chance_alone_explains_little() -> None:
    rng = np.random.default_rng(0)
    found = [epsilon_squared({str(g): list(rng.normal(size=6)) for g in range(5)}) for _ in range(400)]
    assert np.mean([each or 0.0 for each in found]) < 0.08  # η² would be 4 / 29 = 0.14


@given(st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=6), min_size=2, max_size=5))
def test_a_share_is_a_share(groups: list[list[float]]) -> None:
    share = epsilon_squared({str(place): each for place, each in enumerate(groups)})
    assert share is None or 0 <= share <= 1


def test_settings_in_order_with_their_means() -> None:
    space = Space(
        "s", {"noise": Choice((1, 2)), "width": Choice((16, 8)), "one": Choice(("x",)), "lr": Range(0.1, 1.0)}
    )
    records = [
        record(entry, 10 * odd + entry / 10, noise=1 + entry // 4, width=(8, 16)[odd], one="x", lr=0.1 + entry / 10)
        for entry, odd in enumerate([0, 1] * 4)
    ]
    first, *rest = importances([*records, record(8, None, noise=1, width=8, one="x", lr=0.5)], space)
    assert first.name == "width"
    assert first.share is not None
    assert first.share > 0.9
    assert [(group.label, group.trials) for group in first.groups] == [("8", 4), ("16", 4)]
    assert first.groups[1].mean == pytest.approx(10.4)
    assert {each.name for each in rest} == {"noise", "lr"}
    parts = next(each for each in rest if each.name == "lr").groups
    assert [group.label for group in parts] == ["0.1 to 0.2", "0.3 to 0.4", "0.5 to 0.6", "0.7 to 0.8"]
    assert [group.trials for group in parts] == [2, 2, 2, 2]
