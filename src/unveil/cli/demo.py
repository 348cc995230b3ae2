"""`unveil demo`: draw the built-in world, describe its log, write a page."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write: index.html, log.csv, world/.")
    ] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the world and of the draw.")] = 0,
) -> None:
    """Show on a built-in world what a log shows and what it hides."""
    from rich.console import Console
    from rich.table import Table

    from unveil.cli.progress import bar
    from unveil.experiment.demo import run_demo

    with bar("drawing the log") as progress:
        truth = run_demo(output, seed=seed, overwrite=overwrite, progress=progress)
    figures = truth.figures
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for label, value in (
        ("users", f"{figures.users:,}"),
        ("items taken, of all", f"{figures.items:,} of {truth.world.n_items:,}"),
        ("interactions", f"{figures.interactions:,}"),
        ("history length, mean over users", f"{figures.lengths.mean:.1f}"),
        ("interactions on the top 10% of items", f"{figures.skew.top_10_percent:.1%}"),
        ("interactions with the user's true favourite", f"{truth.favourite_taken:.1%}"),
        ("relevance lost, mean over interactions", f"{truth.lost:.2f}"),
    ):
        table.add_row(label, value)
    console = Console()
    console.print(f"{truth.world!r}", highlight=False)
    console.print(table)
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
