"""`unveil world fit LOG -o WORLD`: the world behind a log with ratings."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unveil.cli.log_options import LogOptions, takes_log


@takes_log
def fit(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the world.")],
    config: Annotated[
        list[Path] | None,
        typer.Option(help="A TOML file of settings, as `unveil tune` writes it; one for each part, or one for both."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="T: the last events of each history that count; 100 if not given.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="posterior (if not given: a draw that keeps what is personal), regularised or paper."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random.")] = None,
    severity: Annotated[float | None, typer.Option(help="Exponent p of exposure, above 0; 1 if not given.")] = None,
    centre: Annotated[
        float | None,
        typer.Option(help="The rating that pleases every second time: γ = σ(r − centre); 0 if not given, the paper's."),
    ] = None,
    negatives: Annotated[
        int | None, typer.Option(min=1, help="Tuples drawn as not exposed for each that was; 3 if not given.")
    ] = None,
    redraw: Annotated[
        bool | None, typer.Option("--redraw/--no-redraw", help="Draw the negatives anew for each epoch; the default.")
    ] = None,
    real_lengths: Annotated[
        bool | None, typer.Option("--real-lengths", help="Users are there as long as their history, not at all steps.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Change an option of the recipe, e.g. width=50, exposure.width=10."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Learn relevance from ratings and exposure from what was interacted with; write them as a world."""
    from unveil.cli.pages import write_where_possible
    from unveil.cli.progress import bar
    from unveil.cli.world_table import print_world
    from unveil.files import refuse_occupied
    from unveil.runs.world_page import write_world_page
    from unveil.simulation.fit import fit_world
    from unveil.simulation.fitting.config import fit_of

    refuse_occupied(output, overwrite=overwrite, inputs=[options.log, *(config or [])])
    named = {
        "steps": steps,
        "recipe": recipe,
        "seed": seed,
        "severity": severity,
        "centre": centre,
        "negatives": negatives,
        "redraw": redraw,
        "real_lengths": real_lengths,
    }
    given = {name: value for name, value in named.items() if value is not None}
    wanted = fit_of(config or [], given | _options(assignments or []))
    wanted.recipes()
    log = options.source().load()
    with bar("fitting relevance and exposure") as progress:
        fitted = fit_world(log, wanted, progress)
    fitted.world.save(output, overwrite=overwrite)
    print_world(fitted.world)
    typer.echo(f"the world is in {output}; next: unveil world draw {output} -o log.csv")
    write_where_possible(lambda: write_world_page(fitted.world, output / "index.html", ["unveil", *sys.argv[1:]]))


def _options(assignments: list[str]) -> dict[str, Any]:
    """`name=value` for both, `relevance.name=value` and `exposure.name=value` for one of them."""
    from unveil.errors import unknown
    from unveil.settings import parsed

    parts = ("relevance", "exposure")
    options: dict[str, Any] = {}
    for name, value in map(parsed, assignments):
        part, _, option = name.rpartition(".")
        if part and part not in parts:
            raise unknown("part of a world", part, parts, where=f"--set {name}")
        options |= {f"{each}.{option}": value for each in ([part] if part else parts)}
    return options
