"""`unveil demo`: four losses on a log of the built-in world, judged by the truth; a table and a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unveil.experiment.demo.run import Shown


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder to write: index.html, results.json, results.csv, log.csv, world/."),
    ] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the world, the log and the trainings.")] = 0,
    users: Annotated[int | None, typer.Option(min=1, help="Users of the world; by default 1,000.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of each training; by default 80.")] = None,
    replicates: Annotated[
        int, typer.Option(min=1, help="Repeat everything random, the world included; about a minute each.")
    ] = 1,
) -> None:
    """Show on a built-in world what a log hides, and what four losses learn from it: the truth is known there."""
    from unveil.experiment.demo.progress import demo_watcher
    from unveil.experiment.demo.run import Demo, run_demo

    chosen = Demo(seed=seed, replicates=replicates).sized(users, epochs)
    with demo_watcher(chosen.trainings) as watch:
        shown = run_demo(output, chosen, overwrite=overwrite, watch=watch)
    _print(shown, output)


def _print(shown: "Shown", output: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.experiment.demo.table import FOOT, HEAD, log_line, rows
    from unveil.experiment.demo.words import caution, reading

    console = Console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, title in enumerate(HEAD):
        table.add_column(title, justify="right" if place else "left", no_wrap=True)
    for row in rows(shown.outcome):
        table.add_row(*row)
    console.print(log_line(shown.truth), highlight=False)
    console.print()
    console.print(table)
    for paragraph in (FOOT, *reading(shown.outcome), caution(shown.outcome)):
        console.print()
        console.print(paragraph, highlight=False)
    console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
