"""Writing a log so that it reads back the same: CSV, TSV, JSON lines, RecBole .inter, Parquet; text also packed."""

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import polars as pl
import zstandard

from unveil.data.interactions import Interactions
from unveil.data.readers.table import canonical
from unveil.errors import UnveilError
from unveil.files import atomic_file

#: What can be written; and characters that an id cannot have there. Nothing can be quoted in .inter.
_SUFFIXES = {".csv": r"\x00", ".tsv": r"\x00", ".jsonl": None, ".inter": r"[\x00\t\r\n]", ".parquet": None}
#: Between these moments (µs) whole seconds are read as seconds; earlier ones might be read as dates (19700823).
_SURE = (10**8 * 10**6, 10**11 * 10**6)
_EXACT = 2**32 * 10**6  # Below 2³² seconds a double tells one µs from the next, and is turned back into it exactly
_ISO_YEARS = (-62_135_596_800_000_000, 253_402_300_800_000_000)  # The years 1 to 9999, in µs


def write(log: Interactions, path: str | Path, *, beside: Mapping[str, pl.Series] | None = None) -> None:
    """Write a log under the canonical column names, in the format that the suffix names: whole, or not at all.

    `beside` are columns that are no part of a log, a value a row: weights, for example.
    """
    path = Path(path)
    packed = path.suffix in (".gz", ".zst")
    suffix = path.with_suffix("").suffix if packed else path.suffix
    if suffix not in _SUFFIXES or (suffix == ".parquet" and packed):
        problem = "cannot tell the format to write from the name"
        expected = f"one of {', '.join(_SUFFIXES)}; the text formats also with .gz or .zst"
        raise UnveilError(problem, where=path, found=path.name, expected=expected)
    if not len(log):
        raise UnveilError("there is nothing to write: the log has no events", where=path, hint="Loosen the filters.")
    frame = log.to_frame().with_columns(*([] if log.rating is None else [pl.col("rating").fill_nan(None)]))
    frame = frame.rename({role: canonical(role) for role in ("user", "item", *log.optional())})
    for name in ("user_id", "item_id") if (pattern := _SUFFIXES[suffix]) else ():
        bad = frame[name].filter(frame[name].str.contains(pattern or ""))
        if len(bad):
            problem, hint = "an id has characters that this format cannot carry", "Write a .parquet or .jsonl file."
            raise UnveilError(problem, where=f"{path}, column {name}", found=bad[0], hint=hint)
    with atomic_file(path) as draft, _opened(draft, path.suffix) as file:
        _write(frame.with_columns(**(beside or {})), suffix, file, path)


@contextmanager
def _opened(draft: Path, suffix: str) -> Iterator[IO[bytes]]:
    with draft.open("wb") as plain:
        if suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=plain, mode="wb", compresslevel=6, mtime=0) as packed:
                yield cast(IO[bytes], packed)
        elif suffix == ".zst":
            with zstandard.ZstdCompressor().stream_writer(plain, closefd=False) as packed:
                yield cast(IO[bytes], packed)
        else:
            yield plain


def _write(frame: pl.DataFrame, suffix: str, file: IO[bytes], path: Path) -> None:
    if suffix == ".parquet":
        moments = [pl.col("timestamp").cast(pl.Datetime("us", "UTC"))] if "timestamp" in frame.columns else []
        frame.with_columns(moments).write_parquet(file)
    elif suffix == ".jsonl":
        _as_text(frame, path).write_ndjson(file)
    elif suffix == ".inter":
        text = _as_text(frame, path, decimals=True)
        kinds = {name: "float" if kind.is_numeric() else "token" for name, kind in text.schema.items()}
        file.write("\t".join(f"{name}:{kind}" for name, kind in kinds.items()).encode() + b"\n")
        text.write_csv(file, separator="\t", include_header=False, quote_style="never")
    else:
        _as_text(frame, path).write_csv(file, separator="," if suffix == ".csv" else "\t")


def _as_text(frame: pl.DataFrame, path: Path, *, decimals: bool = False) -> pl.DataFrame:
    """Truths as 1 and 0; times as seconds, with `decimals` if a double can hold them, if unmistakable, or ISO 8601."""
    plain = frame.with_columns(pl.col(pl.Boolean).cast(pl.Int8))
    if "timestamp" not in frame.columns:
        return plain
    time = frame["timestamp"]
    low, high = cast(int, time.min()), cast(int, time.max())
    if _SURE[0] <= low and high < _SURE[1] and not (time % 1_000_000 != 0).any():
        return plain.with_columns(time // 1_000_000)
    if decimals and low > -_EXACT and high < _EXACT:
        return plain.with_columns(time.cast(pl.Decimal(38, 6)) / 1_000_000)
    if not _ISO_YEARS[0] <= low <= high < _ISO_YEARS[1]:
        problem, hint = "a time outside the years 1 to 9999 has no form in text", "Write a .parquet file."
        raise UnveilError(problem, where=path, hint=hint)
    return plain.with_columns(time.cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").alias(time.name))
