"""Small ragged histories for tests, each event with a step that no position would suggest."""

import numpy as np
from hypothesis import strategies as st

from unveil.data.interactions import Sequences


def sequences_of(histories: list[list[int]], n_items: int, *, first_step: int = 0) -> Sequences:
    """Histories of item indices; steps aligned at the end, counted from `first_step`; events numbered backwards."""
    length_U = np.array([len(history) for history in histories], np.int64)
    offset_U1 = np.concatenate([[0], np.cumsum(length_U)]).astype(np.int64)
    item_N = np.array([item for history in histories for item in history], np.int32)
    longest = int(length_U.max(initial=0))
    to_the_end_N = np.repeat(offset_U1[1:], length_U) - np.arange(len(item_N))
    step_N = (first_step + longest - to_the_end_N).astype(np.int32)
    event_N = np.arange(len(item_N), dtype=np.int32)[::-1].copy()
    return Sequences(item_N, step_N, event_N, None, offset_U1, n_items=n_items, n_steps=first_step + longest)


def any_sequences(n_items: int = 5, max_users: int = 12, max_length: int = 9) -> st.SearchStrategy[Sequences]:
    """A few users, some of them without events, at least one with."""
    history = st.lists(st.integers(0, n_items - 1), max_size=max_length)
    several = st.lists(history, min_size=1, max_size=max_users).filter(any)
    return st.builds(sequences_of, several, st.just(n_items), first_step=st.integers(0, 7))
