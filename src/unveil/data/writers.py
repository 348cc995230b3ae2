"""Writing a log so that it reads back the same: CSV, TSV, JSON lines, RecBole .inter, Parquet; text also packed."""

import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import polars as pl
import zstandard

from unveil.data.interactions import Interactions
from unveil.data.readers.columns import written
from unveil.errors import UnveilError
from unveil.files import atomic_file

_PACKED = (".gz", ".zst")
#: Between these moments (µs) whole seconds are read as seconds; earlier ones might be taken for dates (19700823).
_SURE = (10**8 * 10**6, 10**11 * 10**6)
#: Below 2³² seconds a double tells one µs from the next, and is turned back into it exactly.
_EXACT = 2**32 * 10**6
#: The years 1 to 9999, in µs.
_ISO_YEARS = (-62_135_596_800_000_000, 253_402_300_800_000_000)


def write(log: Interactions, path: str | Path, *, beside: Mapping[str, pl.Series] | None = None) -> None:
    """Write a log under the canonical column names, in the format that the suffix names: whole, or not at all.

    `beside` are columns that are no part of a log, a value a row: weights, for example.
    """
    path = Path(path)
    if not len(log):
        raise UnveilError("there is nothing to write: the log has no events", where=path, hint="Loosen the filters.")
    frame = _frame(log).with_columns(**(beside or {}))
    write_body = _writer(path)
    with atomic_file(path) as draft, _opened(draft, path.suffix) as file:
        write_body(frame, file, path)


def _frame(log: Interactions) -> pl.DataFrame:
    """Under the canonical names; a rating that nobody gave is an empty cell."""
    frame = log.to_frame().with_columns(*([] if log.rating is None else [pl.col("rating").fill_nan(None)]))
    return frame.rename({role: written(role) for role in ("user", "item", *log.optional())})


def _writer(path: Path) -> Callable[[pl.DataFrame, IO[bytes], Path], None]:
    suffix = path.with_suffix("").suffix if path.suffix in _PACKED else path.suffix
    if suffix not in _WRITERS or (suffix == ".parquet" and path.suffix in _PACKED):
        raise UnveilError(
            "cannot tell the format to write from the name",
            where=path,
            found=path.name,
            expected=f"one of {', '.join(_WRITERS)}; the text formats also with .gz or .zst",
        )
    return _WRITERS[suffix]


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


def _csv(frame: pl.DataFrame, file: IO[bytes], path: Path) -> None:
    _refuse_ids(frame, r"\x00", path)
    _as_text(frame, path).write_csv(file)


def _tsv(frame: pl.DataFrame, file: IO[bytes], path: Path) -> None:
    _refuse_ids(frame, r"\x00", path)
    _as_text(frame, path).write_csv(file, separator="\t")


def _jsonl(frame: pl.DataFrame, file: IO[bytes], path: Path) -> None:
    _as_text(frame, path).write_ndjson(file)


def _inter(frame: pl.DataFrame, file: IO[bytes], path: Path) -> None:
    """Nothing can be quoted here, so an id with a tab or a line end cannot be written. Times are numbers: seconds."""
    _refuse_ids(frame, r"[\x00\t\r\n]", path)
    text = _as_text(_in_seconds(frame), path)
    file.write(
        "\t".join(f"{name}:{'float' if kind.is_numeric() else 'token'}" for name, kind in text.schema.items()).encode()
    )
    file.write(b"\n")
    text.write_csv(file, separator="\t", include_header=False, quote_style="never")


def _parquet(frame: pl.DataFrame, file: IO[bytes], path: Path) -> None:
    moments = [pl.col("timestamp").cast(pl.Datetime("us", "UTC"))] if "timestamp" in frame.columns else []
    frame.with_columns(moments).write_parquet(file)


_WRITERS = {".csv": _csv, ".tsv": _tsv, ".jsonl": _jsonl, ".inter": _inter, ".parquet": _parquet}


def _as_text(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Truths as 1 and 0, times as seconds or ISO 8601."""
    plain = frame.with_columns(pl.col(pl.Boolean).cast(pl.Int8))
    in_microseconds = frame.schema.get("timestamp") == pl.Int64
    return plain.with_columns(_times(frame["timestamp"], path)) if in_microseconds else plain


def _in_seconds(frame: pl.DataFrame) -> pl.DataFrame:
    """Times that are not whole seconds as seconds with six decimals, where a double can hold them."""
    if "timestamp" not in frame.columns:
        return frame
    time = frame["timestamp"]
    low, high = _span(time)
    if _are_sure_seconds(time) or low <= -_EXACT or high >= _EXACT:
        return frame
    return frame.with_columns(time.cast(pl.Decimal(38, 6)) / 1_000_000)


def _are_sure_seconds(time: pl.Series) -> bool:
    low, high = _span(time)
    return _SURE[0] <= low and high < _SURE[1] and not (time % 1_000_000 != 0).any()


def _span(time: pl.Series) -> tuple[int, int]:
    return cast(int, time.min()), cast(int, time.max())


def _times(time: pl.Series, path: Path) -> pl.Series:
    """Seconds where they are whole and cannot be taken for anything else; else ISO 8601."""
    if _are_sure_seconds(time):
        return time // 1_000_000
    low, high = _span(time)
    if not _ISO_YEARS[0] <= low <= high < _ISO_YEARS[1]:
        raise UnveilError(
            "a time outside the years 1 to 9999 has no form in text", where=path, hint="Write a .parquet file."
        )
    return time.cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").alias(time.name)


def _refuse_ids(frame: pl.DataFrame, pattern: str, path: Path) -> None:
    for name in ("user_id", "item_id"):
        bad = frame[name].filter(frame[name].str.contains(pattern))
        if len(bad):
            raise UnveilError(
                "an id has characters that this format cannot carry",
                where=f"{path}, column {name}",
                found=bad[0],
                hint="Write a .parquet or .jsonl file.",
            )
