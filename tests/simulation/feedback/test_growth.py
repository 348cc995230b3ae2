from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.ragged import sequences_of
from tests.simulation.feedback.small import random_histories
from unveil.data.sequences import Sequences
from unveil.evaluation.metrics import NOBODY
from unveil.simulation.feedback.growth import grown


def events(sequences: Sequences) -> list[list[tuple[int, int]]]:
    ends = sequences.offset_U1
    return [
        list(zip(sequences.item_N[a:b].tolist(), sequences.step_N[a:b].tolist(), strict=True))
        for a, b in pairwise(ends)
    ]


def test_each_user_grows_by_what_they_took_at_the_steps_of_the_rounds() -> None:
    base = sequences_of([[0, 1, 2], [3]], 9)
    taken_RU = np.array([[5, 6], [NOBODY, 7]], np.int32)
    after = grown(base, taken_RU)
    assert base.n_steps == 3
    assert after.n_steps == 5
    assert events(after) == [[(0, 0), (1, 1), (2, 2), (5, 3)], [(3, 2), (6, 3), (7, 4)]]
    assert len(set(after.event_N.tolist())) == len(after)


def test_without_feedback_nothing_changes() -> None:
    base = sequences_of([[0, 1, 2], [3], []], 9)
    after = grown(base, np.zeros((0, 3), np.int32))
    assert events(after) == events(base)
    assert after.n_steps == base.n_steps


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), rounds=st.integers(0, 5))
def test_it_is_the_same_user_by_user(seed: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    base = sequences_of(random_histories(seed), 30)
    taken_RU = rng.integers(NOBODY, 30, (rounds, base.n_users)).astype(np.int32)
    expected = [
        history + [(int(item), base.n_steps + r) for r, item in enumerate(taken_RU[:, user]) if item != NOBODY]
        for user, history in enumerate(events(base))
    ]
    assert events(grown(base, taken_RU)) == expected
