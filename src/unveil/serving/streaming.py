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

KINDS = (".csv", ".jsonl", ".parquet")
#: Rows that are gathered before they are written: small frames would make small, slow files.
ROWS = 1 << 16


def check_kind(path: Path) -> None:
    """Check the ending of the file before any work is done."""
    if path.suffix not in KINDS:
        raise UnveilError("unknown kind of file", where=path, found=path.suffix, expected=f"one of {', '.join(KINDS)}")


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
    with atomic_file(path) as draft:
        _interruptibly(lambda: _sink(lazy, path.suffix, draft), stop)
    return rows


def _sink(lazy: pl.LazyFrame, kind: str, draft: Path) -> None:
    if kind == ".parquet":
        lazy.sink_parquet(draft)
    elif kind == ".csv":
        lazy.sink_csv(draft)
    else:
        lazy.sink_ndjson(draft)


def _interruptibly(write: Callable[[], object], stop: Event) -> None:
    """Write in another thread: inside Polars, this one would not receive SIGTERM until all is written."""
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write)
        try:
            wait([written])
        except BaseException:
            stop.set()
            raise
    written.result()


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
