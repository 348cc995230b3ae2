"""`unveil data pack LOG… -o PACKED`: Parquet files of any size in, a folder that need not fit in memory out."""

from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.log_options import LogOptions, takes_log
from unveil.errors import UnveilError


@takes_log
def pack(
    *,
    options: LogOptions,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[LOG]...", help="More Parquet files, folders of them, or patterns.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write; every command takes it as a LOG.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a folder that is there.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Read a packed LOG whole, and compare it with its hash.")
    ] = False,
) -> None:
    """Pack a log in Parquet files: files, folders of them or patterns, read one after the other in the order of names.

    Memory grows with the users and items, not with the events; so it does when the folder is trained on.
    """
    if check:
        _check(Path(options.log))
        return
    if output is None:
        raise UnveilError("nowhere to write to", expected="a folder", hint="Name one with --output.")
    _pack(options, [options.log, *(more or [])], output, overwrite=overwrite)


def _pack(options: LogOptions, sources: list[str], output: Path, *, overwrite: bool) -> None:
    from unveil.cli.progress import bar
    from unveil.data.packed import pack as packed

    source = options.source()
    for name in ("format", "encoding", "query"):
        if getattr(options, name) not in (None, "parquet"):
            hint = f"Leave --{name} out; `unveil data convert` writes Parquet files."
            raise UnveilError("only Parquet files are packed", found=f"--{name} {getattr(options, name)}", hint=hint)
    with bar("packing") as advance:
        log = packed(
            sources,
            output,
            columns=source.columns,
            time_unit=source.time_unit,
            filters=source.filters,
            overwrite=overwrite,
            tell=advance,
        )
    typer.echo(f"{output}: {log}; columns {', '.join(log.columns())}")


def _check(folder: Path) -> None:
    from unveil.cli.progress import bar
    from unveil.data.packed import PackedLog

    log = PackedLog.open(folder)
    with bar("checking") as advance:
        log.verify(advance)
    typer.echo(f"{folder}: {log}; as it was packed")
