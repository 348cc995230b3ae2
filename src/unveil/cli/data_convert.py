"""`unveil data convert LOG -o OUT`: any log in, a plain file with our column names out."""

from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.log_options import LogOptions, takes_log


@takes_log
def convert(
    *,
    options: LogOptions,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .csv, .tsv, .jsonl, .parquet, .inter; also .gz, .zst."),
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Write a log, less what the filters leave out, as user_id, item_id, timestamp and what else it has."""
    from unveil.data.readers.columns import written
    from unveil.data.writers import write
    from unveil.files import refuse_existing

    refuse_existing(output, overwrite=overwrite)
    log = options.source().load()
    write(log, output)
    columns = ", ".join(written(role) for role in log.columns())
    typer.echo(f"{output}: {log}; columns {columns}")
