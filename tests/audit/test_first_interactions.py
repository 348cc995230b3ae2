"""First takes, and parts of the users."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audit.small import sequences_of
from unveil.audit.timing import first_interactions, some_users

Histories = st.lists(st.lists(st.integers(0, 5), max_size=9), min_size=1, max_size=8).filter(any)


@settings(max_examples=25)
@given(Histories)
def test_first_interactions_are_those_of_a_plain_loop(histories: list[list[int]]) -> None:
    sequences = sequences_of(histories, 6)
    found = first_interactions(sequences)
    assert [found.history(user).tolist() for user in range(len(histories))] == [
        list(dict.fromkeys(history)) for history in histories
    ]
    kept = {int(row): int(step) for row, step in zip(sequences.event_N, sequences.step_N, strict=True)}
    assert all(kept[int(row)] == step for row, step in zip(found.event_N, found.step_N, strict=True))


@settings(max_examples=25)
@given(Histories, st.integers(1, 40), st.integers(0, 5))
def test_some_users_keep_their_whole_histories(histories: list[list[int]], most: int, seed: int) -> None:
    sequences = sequences_of(histories, 6)
    part = some_users(sequences, most, np.random.default_rng(seed))
    whole = [list(part.history(user)) in ([], list(sequences.history(user))) for user in range(len(histories))]
    assert all(whole)
    assert len(part) <= max(most, max(map(len, histories)))
    if len(sequences) <= most:
        assert part is sequences
