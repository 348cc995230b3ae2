"""Logs in Parquet files for tests: any at all, in one file and in many."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from hypothesis import strategies as st

#: Few ids, many ties and repeats; ids whose order as text is not that as numbers.
_ROW = st.fixed_dictionaries(
    {
        "user_id": st.sampled_from(["a", "10", "9", "b", "é"]),
        "item_id": st.sampled_from([1, 2, 10, 11, 100, 20]),
        "timestamp": st.integers(1_700_000_000, 1_700_000_004),
        "rating": st.sampled_from([1.0, 3.5, 5.0]),
        "clicked": st.booleans(),
        "step": st.integers(0, 9),
    }
)
_OPTIONAL = ("timestamp", "rating", "clicked", "step")


@st.composite
def any_frame(draw: st.DrawFn) -> pl.DataFrame:
    """A log of at least two users and two items with some of the optional columns."""
    rows = draw(st.lists(_ROW, min_size=2, max_size=60))
    frame = pl.DataFrame(rows, schema_overrides={"item_id": pl.Int64})
    frame[0, "user_id"], frame[1, "user_id"] = "a", "b"
    frame[0, "item_id"], frame[1, "item_id"] = 2, 10
    left_out = draw(st.sets(st.sampled_from(_OPTIONAL)))
    return frame.drop(left_out)


def cuts_of(rows: int) -> st.SearchStrategy[list[int]]:
    """Where a frame is cut into files; some of them have no rows."""
    return st.lists(st.integers(0, rows), max_size=4).map(sorted)


def write_parts(frame: pl.DataFrame, folder: Path, cuts: Sequence[int]) -> None:
    """A frame as several files, whose order is that of their names."""
    folder.mkdir()
    edges = [0, *cuts, len(frame)]
    for nth, (start, stop) in enumerate(pairwise(edges)):
        frame[start:stop].write_parquet(folder / f"part-{nth:03}.parquet", row_group_size=7)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one example."""
    with TemporaryDirectory() as name:
        yield Path(name)
