"""Small logs for tests: by hand, and any at all."""

from collections.abc import Sequence

import polars as pl
from hypothesis import strategies as st

from unveil.data.interactions import Interactions


def log_of(rows: Sequence[tuple[str, str, int]], **columns: Sequence[object]) -> Interactions:
    """A log from (user, item, time in µs) rows and any optional columns."""
    user, item, time = zip(*rows, strict=True)
    return Interactions.from_frame(pl.DataFrame({"user": user, "item": item, "time": time, **columns}))


def any_log(max_events: int = 40) -> st.SearchStrategy[Interactions]:
    """Logs of a few users and items with many ties and repeats."""
    row = st.tuples(st.sampled_from("abcde"), st.sampled_from("uvwxyz"), st.integers(0, 5))
    return st.lists(row, min_size=1, max_size=max_events).map(log_of)
