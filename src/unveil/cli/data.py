"""`unveil data describe|fetch|convert|pack`: interaction logs."""

import sys
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.options import AsJson, LogFile, LogOptions, Overwrite, option
from unveil.cli.results import print_table
from unveil.cli.terminal import bar
from unveil.errors import UnveilError
from unveil.files import check_new_file

if TYPE_CHECKING:
    from unveil.data.fetch import Dataset
    from unveil.data.fetch.download import Source

HELP = "Describe, fetch, convert and pack interaction logs."


def describe(*, options: LogOptions, json: AsJson = False) -> None:
    """Describe a log: counts, lengths, sparsity, time span, ties, repeats, popularity; before and after filters."""
    from unveil.data.describe import TIE_RULE, rows
    from unveil.data.describe import describe as figures
    from unveil.data.filters import Filters

    source = options.source()
    log = source.read()
    described = {"as it is": figures(log)}
    if source.filters != Filters():
        described["after filters"] = figures(source.filters(log))
    if json:
        typer.echo(dumps({name: asdict(each) for name, each in described.items()}, indent=2))
        return
    tables = zip(*map(rows, described.values()), strict=True)
    print_table([options.log, *described], [[row[0][0], *(value for _, value in row)] for row in tables])
    if any(each.ties is not None and each.ties.events for each in described.values()):
        typer.echo(f"Ties: {TIE_RULE}.")


def fetch(
    name: Annotated[str | None, typer.Argument(help="The data set, e.g. ml-1m; see --list.")] = None,
    everything: Annotated[bool, option("Show which data sets can be fetched and which are here.", "--list")] = False,
    accept_terms: Annotated[bool, option("Accept the terms of use; do not ask.", "--accept-terms")] = False,
    to: Annotated[Path | None, option("Folder to put it in, instead of UNVEIL_DATA.", metavar="DIR")] = None,
    url: Annotated[str | None, option("Another source of the same file: a mirror, or file:///….")] = None,
    checksum: Annotated[str | None, option("md5:… or sha256:… of a file that is packed differently.")] = None,
    force: Annotated[bool, option("Fetch again what is here already.", "--force")] = False,
    skip_certificate: Annotated[bool, option("Accept any TLS certificate.", "--skip-certificate")] = False,
    retries: Annotated[int, option("Tries in a row without progress before giving up.", min=1)] = 5,
    timeout: Annotated[float, option("Seconds to wait for the server.", min=0.1)] = 30.0,
) -> None:
    """Download a public data set; from then on every command accepts its name as LOG.

    Source, size and terms of use are shown first. The checksum has to match, whatever the certificate.
    """
    from unveil.data import fetch as fetching
    from unveil.data.fetch.download import Retries, Watcher

    if everything or name is None:
        typer.echo(f"In {to or fetching.data_home()}:")
        for entry in fetching.CATALOGUE.values():
            state = "here" if fetching.fetched(entry, to) else "-"
            typer.echo(f"  {entry.name:<14} {_size(entry.size):>10}  {state:<5} {entry.title}")
            typer.echo(f"  {'':<32} {entry.page}")
        return
    entry = fetching.dataset(name)
    path, state = None if force else fetching.fetched(entry, to), "is here already"
    if path is None:
        source = fetching.source_of(entry, url, checksum, certificate=not skip_certificate)
        _agree(entry, source, accept_terms)
        try:
            with bar(name, download=True) as advance:
                watcher = Watcher(advance, lambda text: typer.secho(text, err=True, dim=True))
                how: dict[str, Any] = {"home": to, "watcher": watcher, "retries": Retries(timeout, retries)}
                path = fetching.fetch(entry, source, terms_accepted=True, force=force, **how)
        except KeyboardInterrupt:
            typer.echo("unveil: stopped. The download continues when the command is run again.", err=True)
            raise typer.Exit(130) from None
        state = "is here"
    typer.echo(f"{name} {state}: {path}")
    if to is not None and to.expanduser().absolute() != fetching.data_home():
        typer.echo(f"Set UNVEIL_DATA={to} and every command knows it by the name {name}.")
    for other in entry.logs[1:]:
        typer.echo(f"More of it: {name}/{Path(other).name}")


def _agree(entry: "Dataset", source: "Source", accepted: bool) -> None:
    rows = {entry.name: entry.title, "Source:": source.url, "Size:": _size(source.size)}
    rows |= {"Checksum:": source.checksum or "none is known", "Terms:": f"{entry.terms} {entry.terms_url}"}
    for name, text in {**rows, "Cite:": entry.citation}.items():
        typer.echo(f"{name:<14} {text}")
    if accepted:
        return
    if not sys.stdin.isatty():
        hint = "Pass --accept-terms if you accept them."
        raise UnveilError("there is no terminal to ask whether the terms are accepted", where=entry.name, hint=hint)
    if not typer.confirm("Accept these terms and download?"):
        typer.echo("Nothing was fetched.")
        raise typer.Exit(1)


def _size(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e6:.1f} MB"


def convert(*, options: LogOptions, output: LogFile, overwrite: Overwrite = False) -> None:
    """Write a log, after filters, with standard columns: user_id, item_id, timestamp and any others it has."""
    from unveil.data.readers.table import canonical
    from unveil.data.writers import write

    check_new_file(output, overwrite=overwrite)
    log = options.source().load()
    write(log, output)
    typer.echo(f"{output}: {log}; columns {', '.join(map(canonical, log.columns()))}")


def pack(
    *,
    options: LogOptions,
    more: Annotated[list[str] | None, typer.Argument(metavar="[LOG]...", help="More files, folders, patterns.")] = None,
    output: Annotated[Path | None, option("Folder to write; it can be used as LOG.", "--output", "-o")] = None,
    overwrite: Overwrite = False,
    check: Annotated[bool, option("Verify a packed LOG against its hash.", "--check")] = False,
) -> None:
    """Pack a log that need not fit in memory: Parquet files, folders of them or patterns, in order of their names.

    Other formats have to be converted to Parquet first (`unveil data convert`). Memory grows with users and items, not
    with events, both here and in training.
    """
    from unveil.data.packed import PackedLog
    from unveil.data.packed import pack as packed

    if check:
        opened = PackedLog.open(Path(options.log))
        with bar("checking") as advance:
            opened.verify(advance)
        typer.echo(f"{options.log}: {opened}; as it was packed")
        return
    if output is None:
        raise UnveilError("nowhere to write to", expected="a folder", hint="Name one with --output.")
    for name in ("format", "encoding", "query"):
        if getattr(options, name) not in (None, "parquet"):
            hint = f"Leave --{name} out; `unveil data convert` writes Parquet files."
            raise UnveilError("only Parquet files are packed", found=f"--{name} {getattr(options, name)}", hint=hint)
    source, files = options.source(), [options.log, *(more or [])]
    how: dict[str, Any] = {"columns": source.columns, "time_unit": source.time_unit, "filters": source.filters}
    with bar("packing") as advance:
        log = packed(files, output, overwrite=overwrite, tell=advance, **how)
    typer.echo(f"{output}: {log}; columns {', '.join(log.columns())}")


COMMANDS = (describe, fetch, convert, pack)
