"""`unveil reproduce fig1 LOG --titles FILE`: when in their histories users take an item, and whether that is chance."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.log_options import LogOptions, takes_log
from unveil.cli.title_options import TitleIds, Titles

if TYPE_CHECKING:
    from unveil.experiment.fig1.run import Fig1


@takes_log
def fig1(
    *,
    options: LogOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write: index.html, results.json, items.csv.")
    ],
    titles: Titles = None,
    title_ids: TitleIds = None,
    items: Annotated[
        str | None,
        typer.Option(
            metavar="A,B;C",
            help="Items to draw: ids or parts of titles, groups after ;. By default the paper's trilogies.",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=0, help="Orders drawn by static propensities without repeats; 0 leaves that test out.")
    ] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of these draws.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Figure 1: are items taken at times of their own? Boxplots of some, and a test of all."""
    from unveil.data.titles import named_items
    from unveil.experiment.fig1.files import write
    from unveil.experiment.fig1.run import fig1 as found_in
    from unveil.files import atomic_folder, refuse_occupied

    refuse_occupied(output, overwrite=overwrite, inputs=[options.log])
    log = options.source().load()
    found = found_in(log, named_items(log.items, titles, title_ids), items, draws=draws, seed=seed)
    with atomic_folder(output, overwrite=overwrite) as draft:
        write(found, draft, ["unveil", *sys.argv[1:]])
    _print(found, output)


def _print(found: "Fig1", output: Path) -> None:
    from rich.console import Console

    from unveil.experiment.fig1.words import caution, reading

    console = Console()
    for paragraph in (*reading(found), caution(found)):
        console.print(paragraph, highlight=False)
        console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
