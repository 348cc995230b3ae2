"""`unveil data describe|fetch|convert|pack`: interaction logs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import LogOptions, takes_options
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from unveil.data.describe import Description
    from unveil.data.fetch.catalogue import Dataset
    from unveil.data.fetch.download import Source


app = typer.Typer(help="Describe, fetch, convert and pack interaction logs.", no_args_is_help=True)


@app.command("describe")
@takes_options
def describe(
    *,
    options: LogOptions,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Describe a log as it is and, where filters are asked for, what they leave."""
    from unveil.data.describe import describe as figures
    from unveil.data.filters import Filters

    source = options.source()
    log = source.read()
    described = {"as it is": figures(log)}
    if source.filters != Filters():
        described["after filters"] = figures(source.filters(log))
    if json:
        _print_json(described)
    else:
        _print_table(options.log, described)


def _print_json(described: "dict[str, Description]") -> None:
    import json
    from dataclasses import asdict

    typer.echo(json.dumps({name: asdict(figures) for name, figures in described.items()}, indent=2))


def _print_table(title: str, described: "dict[str, Description]") -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.data.describe import TIE_RULE, rows

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in described:
        table.add_column(name, justify="right")
    for label, *cells in zip(*_columns([rows(figures) for figures in described.values()]), strict=True):
        table.add_row(label, *cells)
    console = Console()
    console.print(table)
    if any(figures.ties is not None and figures.ties.events for figures in described.values()):
        console.print(f"Ties: {TIE_RULE}.", style="dim")


def _columns(described: list[list[tuple[str, str]]]) -> list[list[str]]:
    """The labels once, then one column of values for each description."""
    return [[label for label, _ in described[0]], *([value for _, value in pairs] for pairs in described)]


@app.command("fetch")
def fetch(
    name: Annotated[str | None, typer.Argument(help="The data set, e.g. ml-1m; see --list.")] = None,
    everything: Annotated[bool, typer.Option("--list", help="Show what can be fetched and what is here.")] = False,
    accept_terms: Annotated[bool, typer.Option("--accept-terms", help="Accept the terms of use; do not ask.")] = False,
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to put it, instead of UNVEIL_DATA.")] = None,
    url: Annotated[str | None, typer.Option(help="Another source of the same file: a mirror, or file:///….")] = None,
    checksum: Annotated[str | None, typer.Option(help="md5:… or sha256:… of a file packed otherwise.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch again what is here already.")] = False,
    skip_certificate: Annotated[
        bool, typer.Option("--skip-certificate", help="Accept any TLS certificate; the checksum still has to match.")
    ] = False,
    retries: Annotated[int, typer.Option(min=1, help="Tries in a row without progress before giving up.")] = 5,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the server.")] = 30.0,
) -> None:
    """Fetch a public data set; from then on its name stands for its log in every command."""
    from unveil.data import fetch as fetching
    from unveil.data.fetch.catalogue import dataset
    from unveil.data.fetch.download import Patience

    if everything or name is None:
        _print_catalogue(to)
        return
    entry = dataset(name)
    if not force and (path := fetching.fetched(entry, to)):
        _print_place(entry, path, to, "is here already")
        return
    source = fetching.source_of(entry, url, checksum, certificate=not skip_certificate)
    _agree(entry, source, accept_terms)
    with _watching(name) as watcher:
        path = fetching.fetch(
            entry,
            source,
            terms_accepted=True,
            home=to,
            force=force,
            watcher=watcher,
            patience=Patience(timeout, retries),
        )
    _print_place(entry, path, to, "is here")


def _print_catalogue(to: Path | None) -> None:
    from unveil.data.fetch import catalogue, data_home, fetched

    typer.echo(f"In {to or data_home()}:")
    for entry in catalogue().values():
        state = "here" if fetched(entry, to) else "-"
        typer.echo(f"  {entry.name:<14} {_size(entry.size):>10}  {state:<5} {entry.title}")
        typer.echo(f"  {'':<32} {entry.page}")


def _print_place(entry: "Dataset", path: Path, to: Path | None, state: str) -> None:
    from unveil.data.fetch import data_home

    typer.echo(f"{entry.name} {state}: {path}")
    if to is not None and to.expanduser().absolute() != data_home():
        typer.echo(f"Set UNVEIL_DATA={to} and every command knows it by the name {entry.name}.")
    for other in entry.logs[1:]:
        typer.echo(f"More of it: {entry.name}/{Path(other).name}")


def _agree(entry: "Dataset", source: "Source", accepted: bool) -> None:
    """Show what is about to be fetched; go on only if the user agrees to its terms."""
    for label, text in (
        ("", entry.title),
        ("Source", source.url),
        ("Size", _size(source.size)),
        ("Checksum", source.checksum or "none is known"),
        ("Terms", f"{entry.terms} {entry.terms_url}"),
        ("Cite", entry.citation),
    ):
        typer.echo(f"{label + ':' if label else entry.name:<14} {text}")
    if accepted:
        return
    if not sys.stdin.isatty():
        hint = "Pass --accept-terms if you accept them."
        raise UnveilError("there is nobody to ask whether the terms are accepted", where=entry.name, hint=hint)
    if not typer.confirm("Do you accept these terms, and shall it be fetched?"):
        typer.echo("Nothing was fetched.")
        raise typer.Exit(1)


def _size(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e6:.1f} MB"


class _Bar:
    """Shows the download on a terminal; elsewhere only what is worth a line."""

    def __init__(self, progress: "Progress", task: "TaskID") -> None:
        self._progress, self._task = progress, task

    def at(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def note(self, text: str) -> None:
        self._progress.console.print(text, style="dim")


@contextmanager
def _watching(name: str) -> Iterator[_Bar]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            yield _Bar(progress, progress.add_task(name, total=None))
    except KeyboardInterrupt:
        typer.echo("unveil: stopped. What came is kept: run the command again to go on from there.", err=True)
        raise typer.Exit(130) from None


@app.command("convert")
@takes_options
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


@app.command("pack")
@takes_options
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
    from unveil.cli.terminal import bar
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
    from unveil.cli.terminal import bar
    from unveil.data.packed import PackedLog

    log = PackedLog.open(folder)
    with bar("checking") as advance:
        log.verify(advance)
    typer.echo(f"{folder}: {log}; as it was packed")
