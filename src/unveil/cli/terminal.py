"""What commands share: studies, progress bars, pages, tables, and the end by a signal."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unveil.cli.options import WORKER_OPTIONS
from unveil.cli.results import print_table
from unveil.files import atomic_folder
from unveil.processes import sigterm_interrupts

if TYPE_CHECKING:
    from unveil.report.page import Table as PageTable
    from unveil.runs.workers import Engine
    from unveil.studies.engine import Report, Study


def write_where_possible(write: Callable[[], Path], *, aside: bool = False) -> None:
    """Write the page and say where it is, or say what is missing; `aside`, on standard error."""
    from unveil.report.page import can_be_written

    missing = "no page: pages need jinja2 and matplotlib; pip install 'unveil[report]'"
    typer.echo(f"open {write()}" if can_be_written() else missing, err=aside)


@contextmanager
def bar(label: str, *, download: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """Give a function of (done, in all) that keeps a bar on standard error; the bar goes when the work is done."""
    from rich import progress as rich
    from rich.console import Console

    done_of_all = [rich.DownloadColumn(), rich.TransferSpeedColumn()] if download else [rich.TaskProgressColumn()]
    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), *done_of_all, rich.TimeRemainingColumn())
    progress = rich.Progress(*columns, console=Console(stderr=True), transient=True)
    task, begun = progress.add_task(label, total=None), time.monotonic()

    def advance(done: int, total: int | None) -> None:
        late = time.monotonic() - begun > 0.7  # seconds: work that is done sooner needs no bar
        if late and progress.console.is_terminal and not progress.live.is_started:
            progress.start()
        progress.update(task, completed=done, total=total)

    try:
        yield advance
    finally:
        if progress.live.is_started:
            progress.stop()


#: How a study that was stopped goes on.
_AGAIN = ". Go on with the same command."


@contextmanager
def until_stopped(output: Path, hint: str = _AGAIN) -> Iterator[None]:
    """Inside, Ctrl-C or SIGTERM ends the command with a message on how to go on."""
    try:
        with sigterm_interrupts():
            yield
    except KeyboardInterrupt as stop:
        typer.echo(f"unveil: {str(stop) or 'stopped'} in {output}{hint}", err=True)
        raise typer.Exit(130) from None


def run_study(
    study: "Study",
    output: Path,
    workers: "Engine",
    *,
    overwrite: bool = False,
    copy_from: Path | None = None,
    steps: int = 1,
    hint: str = _AGAIN,
) -> "Report":
    """Run, write and print a study of cells with so many steps; one that is overwritten stays until it is whole."""
    from unveil.runs.progress import job_watcher
    from unveil.studies.engine import run, write

    say = partial(typer.echo, err=True)
    place = atomic_folder(output, overwrite=True) if overwrite else nullcontext(output)
    with until_stopped(output, hint), place as folder:
        answer = run(study, folder, workers, watch=job_watcher(steps=steps), copy_from=copy_from, say=say)
        report = write(answer, folder, command_of(sys.argv[1:]))
    print_report(report, output)
    return report


def print_report(report: "Report", folder: Path | None = None) -> None:
    """Tables, then what they say, then where the page is."""
    for table in report.tables:
        typer.echo(table.caption)
        print_table([column.title for column in table.columns], table.texts)
        typer.echo(f"{table.foot}\n")
    print_paragraphs(*report.paragraphs)
    if folder is not None:
        typer.echo(f"open {folder / 'index.html'}")


def this_command() -> list[str]:
    """What was typed."""
    return ["unveil", *sys.argv[1:]]


def command_of(words: list[str]) -> list[str]:
    """The command that gives these files again; who does the work, and when it was resumed, is no part of it."""
    pairs = zip(["", *words], words, strict=False)
    kept = [word for before, word in pairs if before not in WORKER_OPTIONS and word not in WORKER_OPTIONS]
    left_out = ("--resume", *(f"{option}=" for option in WORKER_OPTIONS))
    return ["unveil", *(word for word in kept if not word.startswith(left_out))]


def print_page_table(table: "PageTable", paragraphs: Sequence[str] = ()) -> None:
    """A table of a page with its legend, then text."""
    print_table([column.title for column in table.columns], table.texts)
    legend = " · ".join(f"{column.title}: {column.about}" for column in table.columns if column.about)
    print_paragraphs(*filter(None, (legend, *paragraphs)))


def print_paragraphs(*paragraphs: str) -> None:
    """Text, wrapped at the width of the terminal, an empty line after each paragraph."""
    from rich.console import Console

    for paragraph in paragraphs:
        Console(highlight=False).print(f"{paragraph}\n")
