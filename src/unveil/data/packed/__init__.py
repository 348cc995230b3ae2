"""Logs larger than memory: Parquet files packed once into a folder, which is then used like any other log."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unveil.data.filters import Filters
from unveil.data.packed.ingest import Parts, clock_of, write_columns
from unveil.data.packed.log import PackedLog, Progress, Tell, filter_columns, lay_out, seal
from unveil.data.readers.table import ReadOptions
from unveil.files import atomic_folder, check_free

__all__ = ["PackedLog", "pack"]


def pack(
    sources: Sequence[str | Path],
    folder: Path,
    *,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    filters: Filters | None = None,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> PackedLog:
    """Pack the log in these Parquet files, folders of them or patterns, whole or not at all.

    Its rows are those of the files, by path within a folder or pattern. What is packed equals what would be read into
    memory: ids, order, steps, and what the filters leave. Memory grows with the users and items, not with the events.
    """
    options, filters = ReadOptions(columns=dict(columns or {}), time_unit=time_unit), filters or Filters()
    parts = Parts.of(sources, options.columns)
    check_free(folder, overwrite=overwrite, inputs=parts.rows)
    filters.check_ratings(rated="rating" in parts.kinds)
    filtered = filters != Filters()
    progress = Progress(tell, ["clock", "ingest", *(["filter"] if filtered else []), "histories", "hash"])
    clock = clock_of(parts, options.time_unit, progress)
    with atomic_folder(folder, overwrite=overwrite) as draft:
        log = write_columns(parts, clock, draft, progress)
        if filtered:
            log = filter_columns(log, filters, progress)
        n_steps = lay_out(log, draft, progress)
        seal(log, n_steps, filters, draft, progress)
    progress.at(1.0)
    return PackedLog.open(folder)
