"""`unveil reproduce fig1 LOG --titles FILE`: when users interact with an item, and whether that is chance."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.options import LogOptions, TitleIds, Titles, takes_options


@takes_options
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
    """Figure 1: do items have a typical place in histories? Box plots of some, and a test of all."""
    from rich.console import Console

    from unveil.data.titles import named_items
    from unveil.files import atomic_folder, refuse_occupied
    from unveil.studies.fig1 import fig1 as compute
    from unveil.studies.fig1_report import write

    refuse_occupied(output, overwrite=overwrite, inputs=[options.log])
    log = options.source().load()
    found = compute(log, named_items(log.items, titles, title_ids), items, draws=draws, seed=seed)
    with atomic_folder(output, overwrite=overwrite) as draft:
        paragraphs = write(found, draft, ["unveil", *sys.argv[1:]])
    console = Console()
    for paragraph in paragraphs:
        console.print(f"{paragraph}\n", highlight=False)
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
