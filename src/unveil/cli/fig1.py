"""`unveil reproduce fig1 LOG --titles FILE`: when users interact with an item, and whether that is chance."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.options import LogOptions, Overwrite, TitleIds, Titles, option, takes_options
from unveil.cli.terminal import print_paragraphs


@takes_options
def fig1(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder to write: index.html, results.json, items.csv.", "--output", "-o")],
    titles: Titles = None,
    title_ids: TitleIds = None,
    items: Annotated[
        str | None,
        option("Items to draw: ids or parts of titles, groups after ;. By default the paper's.", metavar="A,B;C"),
    ] = None,
    draws: Annotated[int, option("Orders drawn by static propensities without repeats; 0: no such test.", min=0)] = 50,
    seed: Annotated[int, option("Seed of these draws.", min=0)] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Figure 1: do items have a typical place in histories? Box plots of some, and a test of all."""
    from unveil.data.titles import named_items
    from unveil.files import atomic_folder, refuse_occupied
    from unveil.studies.fig1 import fig1 as compute
    from unveil.studies.fig1_report import write

    refuse_occupied(output, overwrite=overwrite, inputs=[options.log])
    log = options.source().load()
    found = compute(log, named_items(log.items, titles, title_ids), items, draws=draws, seed=seed)
    with atomic_folder(output, overwrite=overwrite) as draft:
        paragraphs = write(found, draft, ["unveil", *sys.argv[1:]])
    print_paragraphs(*paragraphs)
    typer.echo(f"open {output / 'index.html'}")
