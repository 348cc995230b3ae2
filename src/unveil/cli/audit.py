"""`unveil audit LOG -o audit.html`: what a log says about its own exposure, without training."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.log_options import LogOptions, takes_log
from unveil.cli.title_options import TitleIds, Titles

if TYPE_CHECKING:
    from unveil.audit.advice import Audit


@takes_log
def audit(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write; its figures and plots go beside it.")],
    titles: Titles = None,
    title_ids: TitleIds = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of shuffles, samples and negatives.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Look at a log before anything is trained: popularity, order, leakage, baselines, weights, and what to do."""
    from unveil.audit.advice import audit as audited
    from unveil.audit.page import refuse_unfit, write
    from unveil.cli.progress import bar
    from unveil.data.titles import named_items

    refuse_unfit(output, overwrite=overwrite)
    log = options.source().load()
    names = named_items(log.items, titles, title_ids)
    with bar("auditing") as progress:
        found = audited(log, seed=seed, progress=progress)
    write(found, log, names, options.log, output, ["unveil", *sys.argv[1:]])
    _print(found, output)


def _print(found: "Audit", output: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.audit.page import beside, key_figures, size

    console = Console()
    console.print(f"{size(found)} {found.verdict}", highlight=False)
    console.print()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for figure in key_figures(found):
        table.add_row(figure.value, figure.label)
    console.print(table)
    warnings = [each.title for each in found.advice if each.warning]
    if warnings:
        console.print()
    for title in warnings:
        console.print(f"[bold]Warning[/bold]  {title}", highlight=False)
    console.print()
    console.print(f"open {output} (figures: {beside(output)})", highlight=False, soft_wrap=True)
