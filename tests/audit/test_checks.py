"""Leakage, cold cases and repeats: by hand, and against plain loops."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audit.small import log_of, sequences_of
from unveil.audit.checks import cold, leakage, repeats
from unveil.audit.timing import first_interactions
from unveil.data.interactions import Sequences
from unveil.data.splits import leave_one_out, temporal_split


def test_leakage_by_hand() -> None:
    # u0 is done at 4, u1 goes on until 9. Training: u0 at 1, 2; u1 at 5, 6. Tests: u0 at 4 (item 3), u1 at 9 (item 0).
    split = leave_one_out(sequences_of([[0, 1, 2, 3], [3, 1, 2, 0]], 4, [[1, 2, 3, 4], [5, 6, 8, 9]]))
    found = leakage(split)
    assert found is not None
    assert found.cases == 2
    assert found.leaking == 0.5
    assert found.later == 0.25  # ½ for u0, none for u1
    assert found.unborn == 0.5  # item 3 is first taken at 5, after u0 is asked for it


def test_an_item_that_is_nowhere_in_training_is_cold_not_unborn() -> None:
    split = leave_one_out(sequences_of([[0, 1, 2, 3], [0, 1, 2, 0]], 4, [[1, 2, 3, 4], [5, 6, 8, 9]]))
    found = leakage(split)
    assert found is not None
    assert found.unborn == 0
    assert cold(split.whole, {"leave-one-out": split}).splits["leave-one-out"].items == 0.5


@st.composite
def timed(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    lengths = draw(st.lists(st.integers(3, 7), min_size=1, max_size=6))
    item, time = st.integers(0, 5), st.integers(0, 30)
    histories = [draw(st.lists(item, min_size=n, max_size=n)) for n in lengths]
    return histories, [sorted(draw(st.lists(time, min_size=n, max_size=n))) for n in lengths]


@settings(max_examples=25)
@given(timed())
def test_leakage_against_a_loop(log: tuple[list[list[int]], list[list[int]]]) -> None:
    histories, times = log
    found = leakage(leave_one_out(sequences_of(histories, 6, times)))
    assert found is not None
    training = [
        (item, time) for h, t in zip(histories, times, strict=True) for item, time in zip(h[:-2], t[:-2], strict=True)
    ]
    later, unborn = [], []
    for history, each in zip(histories, times, strict=True):
        later.append(sum(time > each[-1] for _, time in training) / len(training))
        mine = [time for item, time in training if item == history[-1]]
        unborn.append(bool(mine) and min(mine) > each[-1])
    assert found.later == pytest.approx(np.mean(later))
    assert found.leaking == pytest.approx(np.mean([share > 0 for share in later]))
    assert found.unborn == pytest.approx(np.mean(unborn))


@settings(max_examples=25)
@given(timed())
def test_repeats_against_a_loop(log: tuple[list[list[int]], list[list[int]]]) -> None:
    histories, times = log
    sequences = sequences_of(histories, 6, times)
    found = repeats(sequences, first_interactions(sequences), leave_one_out(sequences))
    rows = [
        (user, item, time)
        for user, (h, t) in enumerate(zip(histories, times, strict=True))
        for item, time in zip(h, t, strict=True)
    ]
    assert found.events == sum(len(h) - len(set(h)) for h in histories)
    assert found.share == pytest.approx(found.events / len(rows))
    assert found.at_once == sum(a == b for h in histories for a, b in itertools.pairwise(h))
    assert found.same_moment == len(rows) - len(set(rows))
    assert found.targets == pytest.approx(np.mean([h[-1] in h[:-1] for h in histories]))


def test_a_split_in_time_does_not_leak() -> None:
    rng = np.random.default_rng(0)
    times = [np.sort(rng.integers(0, 1000, 8)).tolist() for _ in range(40)]
    split = temporal_split(sequences_of([rng.integers(0, 9, 8).tolist() for _ in range(40)], 9, times))
    found = leakage(split)
    assert found is not None
    assert found.later == 0
    assert found.leaking == 0


def test_without_a_clock_nothing_is_claimed() -> None:
    log = log_of([[0, 1, 1, 2], [1, 2, 0]], 3)
    ordered = Sequences.of(type(log)(log.user, log.item, log.users, log.items))
    assert leakage(leave_one_out(ordered)) is None
    assert repeats(ordered, first_interactions(ordered), None).same_moment is None


def test_cold_by_hand() -> None:
    histories = [[0, 0, 0, 0, 0, 1], [0, 2, 3], [4], [5, 0]]
    sequences = sequences_of(histories, 6)
    found = cold(sequences, {"loo": leave_one_out(sequences)})
    assert found.rare_items == 5 / 6
    assert found.rare_events == 5 / 12
    assert found.short_users == 3 / 4
    assert found.unusable_users == 2 / 4
    # Training: 0 0 0 0 | 0 | 4 | 5 0. Tests: 1 and 3, neither in training; both users are.
    assert found.splits["loo"].items == 1
    assert found.splits["loo"].users == 0
