"""`unveil propensity score LOG --world WORLD`: estimated propensities against the truth of a world."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.log_options import LogOptions, takes_log


@takes_log
def score(
    *,
    options: LogOptions,
    world: Annotated[Path, typer.Option(help="Folder of the world that the log was drawn from.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the scores.")],
    propensity: Annotated[
        list[str] | None,
        typer.Option(help="Which to score; repeat for more. By default all that the log is enough for."),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PROPENSITY:NAME=VALUE", help="An option of one, e.g. damped-static:exponent=1"),
    ] = None,
    slots: Annotated[int, typer.Option(min=1, help="Training events, drawn at random, to score at.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of that draw.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Score every propensity that can be estimated from a log by what is true in the world it was drawn from."""
    from unveil.cli.propensity import print_table
    from unveil.files import refuse_occupied
    from unveil.runs.propensity_scores import reading, score_all, table, write
    from unveil.simulation.world import World

    refuse_occupied(output, overwrite=overwrite, inputs=[options.log, world])
    truth, log = World.load(world), options.source().load()

    def tell(name: str) -> None:
        typer.echo(f"fitting {name}", err=True)

    found = score_all(truth, log, propensity or (), assignments or (), slots=slots, seed=seed, tell=tell)
    about = write(found, log, output, ["unveil", *sys.argv[1:]], overwrite=overwrite)
    print_table(table(about["scores"]), reading(about))
    typer.echo(f"open {output / 'index.html'}")
