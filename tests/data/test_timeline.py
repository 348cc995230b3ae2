"""The nth moment and who had how many events by then: against sorting, and without holding all times."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.data.on_disk import many_events, on_disk, peak_of
from unveil.data import indexing, interactions, mapped, splits
from unveil.data.interactions import Sequences
from unveil.data.splits import Timeline, temporal_split

SMALLEST, LARGEST = -(2**63), 2**63 - 1
moments = st.one_of(st.integers(SMALLEST, LARGEST), st.integers(0, 3), st.sampled_from([SMALLEST, LARGEST]))


def histories(time: list[int], cut: int, left_out: int = 0) -> Sequences:
    """Two users, the first with `cut` events; some rows at the end of the log are nobody's."""
    size = len(time) - left_out
    time_N = np.array(time, np.int64)
    row_N = np.concatenate([np.argsort(time_N[:cut]), cut + np.argsort(time_N[cut:size])]).astype(np.int32)
    zero_N = np.zeros(size, np.int32)
    return Sequences(zero_N, zero_N, row_N, time_N, np.array([0, cut, size]), n_items=1, n_steps=1)


@given(st.lists(moments, min_size=1, max_size=30), st.data())
def test_the_nth_is_that_of_the_sorted_times(time: list[int], data: st.DataObject) -> None:
    left_out = data.draw(st.integers(0, len(time) - 1))
    size = len(time) - left_out
    found = Timeline(histories(time, data.draw(st.integers(0, size)), left_out))
    assert found.span == (min(time[:size]), max(time[:size]))
    assert [found.nth(n) for n in range(size)] == sorted(time[:size])


@given(st.lists(moments, min_size=1, max_size=30), moments, st.data())
def test_events_before_a_moment_by_brute_force(time: list[int], moment: int, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(time)))
    (found_U, none_U) = Timeline(histories(time, cut)).before(moment, SMALLEST)
    assert found_U.tolist() == [sum(at < moment for at in part) for part in (time[:cut], time[cut:])]
    assert none_U.tolist() == [0, 0]


def test_a_hundred_passes_are_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = 0

    def counted(time_B: NDArray[np.int64], low: int, size: int, width: int) -> NDArray[np.int64]:
        nonlocal passes
        passes += 1
        return plain(time_B, low, size, width)

    plain = splits._binned
    monkeypatch.setattr(splits, "_binned", counted)
    assert Timeline(histories([SMALLEST, 5, LARGEST], 1)).nth(1) == 5
    assert passes == 4


def test_a_split_of_histories_on_the_disk_holds_a_small_part_of_the_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = many_events()
    disk = on_disk(memory, tmp_path)
    for module, name in ((interactions, "BLOCK"), (mapped, "BLOCK"), (indexing, "_BLOCK"), (splits, "_BINS")):
        monkeypatch.setattr(module, name, 1 << 12)
    # Of 400,000 events: the times alone are 3.2 MB, with their users and a copy to look for cuts in 8 MB.
    assert peak_of(lambda: temporal_split(disk)) < 1_000_000
    found, expected = temporal_split(disk), temporal_split(memory)
    assert found.rule == expected.rule
    for name in ("valid", "test"):
        for mine, theirs in zip(
            vars(getattr(found, name)).values(), vars(getattr(expected, name)).values(), strict=True
        ):
            assert np.array_equal(mine, theirs)
    assert np.array_equal(found.train.item_N, expected.train.item_N)
    time_N = memory.time_N
    assert time_N is not None
    cut = np.sort(time_N)[int(0.8 * len(time_N))]
    assert len(found.train) == (time_N < cut).sum()
    assert f"validation from {datetime.fromtimestamp(int(cut) // 10**6, UTC):%Y-%m-%dT%H:%M:%S}" in found.rule
