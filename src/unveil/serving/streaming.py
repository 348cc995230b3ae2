"""Frames written to one file as they are made: memory does not grow with their number."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from unveil.errors import UnveilError
from unveil.files import atomic_file

_SINKS: Mapping[str, Callable[..., object]] = {
    ".csv": pl.LazyFrame.sink_csv,
    ".jsonl": pl.LazyFrame.sink_ndjson,
    ".parquet": pl.LazyFrame.sink_parquet,
}
#: Rows that are gathered before they are written: small frames would make small, slow files.
ROWS = 1 << 16


def check_kind(path: Path) -> None:
    """Check the ending of the file before any work is done."""
    if path.suffix not in _SINKS:
        raise UnveilError("unknown kind of file", where=path, found=path.suffix, expected=f"one of {', '.join(_SINKS)}")


def write_frames(frames: Iterator[pl.DataFrame], schema: Mapping[str, Any], path: Path) -> int:
    """Write them in the format that the ending names, whole or not at all; the number of rows."""
    check_kind(path)
    rows, stop = 0, Event()

    def source(columns: object, predicate: object, limit: object, size: object) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for frame in _gathered(frames):
            if stop.is_set():
                raise RuntimeError("stopped")
            rows += len(frame)
            yield frame

    lazy = register_io_source(source, schema=dict(schema), validate_schema=True)
    # In another thread: inside Polars, this one would not receive SIGTERM until all is written.
    with atomic_file(path) as draft, ThreadPoolExecutor(1) as pool:
        written = pool.submit(_SINKS[path.suffix], lazy, draft)
        try:
            wait([written])
        except BaseException:
            stop.set()
            raise
        written.result()
    return rows


def _gathered(frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows in frames of about `ROWS`."""
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame)
        if sum(map(len, held)) >= ROWS:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)
