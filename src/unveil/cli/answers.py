"""What all questions of the paper share on the command line: running a grid, and printing what came out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from unveil.cli.engine_options import OF_NO_CONSEQUENCE

if TYPE_CHECKING:
    from rich.console import Console

    from unveil.experiment.reproduce.question import Sheet

#: Columns of a table that goes to a file, where nothing has to be cut off.
_WIDE = 160


@contextmanager
def until_stopped(output: Path) -> Iterator[None]:
    """Inside, being asked to stop ends the command with a word on how to go on."""
    from unveil.processes import sigterm_interrupts

    try:
        with sigterm_interrupts():
            yield
    except KeyboardInterrupt as stop:
        typer.echo(f"unveil: {str(stop) or 'stopped'} in {output}. Go on with the same command.", err=True)
        raise typer.Exit(130) from None


def command_of(words: list[str]) -> list[str]:
    """The command that gives these files again; who does the work is no part of it."""
    pairs = zip(["", *words], words, strict=False)
    kept = [word for before, word in pairs if before not in OF_NO_CONSEQUENCE and word not in OF_NO_CONSEQUENCE]
    joined = tuple(f"{option}=" for option in OF_NO_CONSEQUENCE)
    return ["unveil", *(word for word in kept if not word.startswith(joined))]


def wide_enough(console: "Console") -> "Console":
    """For tables: a terminal has the width it has, a file any."""
    from rich.console import Console

    return console if console.is_terminal else Console(width=_WIDE)


def print_answer(sheets: "Sequence[Sheet]", paragraphs: Sequence[str], output: Path) -> None:
    """Tables, then what they say, then where the page is."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for sheet in sheets:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for place, title in enumerate(sheet.head):
            table.add_column(title, justify="right" if place else "left", no_wrap=True)
        for row in sheet.rows:
            table.add_row(*row)
        console.print(sheet.title, highlight=False)
        wide_enough(console).print(table, highlight=False)
        console.print(f"{sheet.foot}\n", highlight=False)
    for paragraph in paragraphs:
        console.print(paragraph, highlight=False)
        console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
