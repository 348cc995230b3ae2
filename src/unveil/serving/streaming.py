"""Frames made one after another, written as one file: memory does not grow with their number."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from unveil.errors import UnveilError
from unveil.files import atomic_file

KINDS = (".csv", ".jsonl", ".parquet")
#: Rows that are gathered before they are written: small frames would make small, slow files.
ROWS = 1 << 16


def refuse_unknown_kind(path: Path) -> None:
    """Stop before any work is done where the file's ending says nothing."""
    if path.suffix not in KINDS:
        raise UnveilError("unknown kind of file", where=path, found=path.suffix, expected=f"one of {', '.join(KINDS)}")


def write_frames(frames: Iterator[pl.DataFrame], schema: Mapping[str, Any], path: Path) -> int:
    """Write them in the format that the ending names, whole or not at all; the number of rows."""
    refuse_unknown_kind(path)
    rows = 0

    def source(columns: object, predicate: object, limit: object, size: object) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for frame in _gathered(frames):
            rows += len(frame)
            yield frame

    lazy = register_io_source(source, schema=dict(schema), validate_schema=True)
    with atomic_file(path) as draft:
        if path.suffix == ".parquet":
            lazy.sink_parquet(draft)
        elif path.suffix == ".csv":
            lazy.sink_csv(draft)
        else:
            lazy.sink_ndjson(draft)
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
