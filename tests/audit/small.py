"""Logs whose order is known by construction."""

from collections.abc import Sequence

import numpy as np

from unveil.data.indexing import Vocabulary
from unveil.data.interactions import Interactions, Sequences


def log_of(
    histories: Sequence[Sequence[int]], n_items: int, times: Sequence[Sequence[int]] | None = None
) -> Interactions:
    """These histories, one user each; in order, or at these times."""
    user = np.repeat(np.arange(len(histories), dtype=np.int32), [len(history) for history in histories])
    item = np.array([item for history in histories for item in history], np.int32)
    time = np.arange(len(item)) if times is None else np.array([time for each in times for time in each])
    users, items = (Vocabulary(f"{n:04d}" for n in range(size)) for size in (len(histories), n_items))
    return Interactions(user, item, users, items, time=time.astype(np.int64) * 1_000_000)


def sequences_of(
    histories: Sequence[Sequence[int]], n_items: int, times: Sequence[Sequence[int]] | None = None
) -> Sequences:
    return Sequences.of(log_of(histories, n_items, times))


def drawn(seed: int, users: int, items: int, rates: object, lengths: tuple[int, int]) -> list[list[int]]:
    """Histories of items drawn one by one, in proportion to fixed rates, none of them twice."""
    rng = np.random.default_rng(seed)
    arrival_UV = rng.exponential(size=(users, items)) / np.asarray(rates)
    order_UV = np.argsort(arrival_UV, axis=1)
    return [row[:length].tolist() for row, length in zip(order_UV, rng.integers(*lengths, users), strict=True)]
