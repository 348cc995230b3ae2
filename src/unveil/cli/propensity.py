"""`unveil propensity score LOG --world WORLD`: estimated propensities against the truth of a world."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.options import LogOptions, takes_options

if TYPE_CHECKING:
    from unveil.propensity.time_of_day_fit import ExposureFit
    from unveil.report.page import Table as PageTable


@takes_options
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


@takes_options
def positions(
    *,
    options: LogOptions,
    deepest: Annotated[
        int, typer.Option(min=0, help="Count all positions from this one on as one; 0: each is its own.")
    ] = 0,
    draws: Annotated[int, typer.Option(min=1, help="Draws of the impressions, for the intervals.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Seed of these draws.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Tell how often each position is looked at, apart from what is placed there, by items shown at several."""
    from dataclasses import asdict

    from unveil.runs.positions import looked_at, reading, table

    found = looked_at(options.source().load(), deepest=deepest, draws=draws, seed=seed)
    if json:
        import json as as_json

        typer.echo(as_json.dumps(asdict(found), indent=1))
    else:
        print_table(table(found), reading(found))


app = typer.Typer(
    help="Propensities: learnt from what was shown, taken or not; scored against the truth of a world.",
    no_args_is_help=True,
)

app.command("score")(score)
app.command("positions")(positions)


@app.command("fit")
@takes_options
def fit(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the learnt exposure.")],
    valid_days: Annotated[int, typer.Option(min=1, help="Days to stop and calibrate by.")] = 2,
    test_days: Annotated[int, typer.Option(min=1, help="The last days, to judge on.")] = 2,
    half_life: Annotated[float, typer.Option(help="Days after which an impression counts half in “of late”.")] = 1.0,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="width, epochs, patience, negatives, batch, lr or penalty."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Learn how likely each item was to be shown to whom and when; judge it on the last days beside popularity."""
    from unveil.cli.terminal import bar
    from unveil.files import refuse_occupied
    from unveil.propensity.time_of_day_fit import fit as fitted_to
    from unveil.runs.exposure_fit import write

    refuse_occupied(output, overwrite=overwrite, inputs=[options.log])
    how = _how(valid_days, test_days, half_life, assignments or [], seed)
    log = options.source().load()
    with bar("learning exposure") as progress:
        found = fitted_to(log, how, progress)
    _print(write(found, log, how, output, ["unveil", *sys.argv[1:]], overwrite=overwrite))
    typer.echo(
        f"open {output / 'index.html'}; use: --set propensity.name=learnt-temporal --set propensity.path={output}"
    )


@app.command("describe")
def describe(
    folder: Annotated[Path, typer.Argument(help="A folder that `unveil propensity fit` wrote.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show how good a learnt exposure is, beside popularity."""
    from unveil.propensity.time_of_day import about

    told = about(folder)
    if json:
        import json as as_json

        typer.echo(as_json.dumps(told, indent=1, ensure_ascii=False))
    else:
        _print(told)


def _how(valid_days: int, test_days: int, half_life: float, assignments: list[str], seed: int) -> "ExposureFit":
    from unveil.propensity.time_of_day_fit import ExposureFit
    from unveil.settings import changed, parsed

    how = ExposureFit(valid_days, test_days, half_life=half_life, seed=seed)
    return changed(how, {f"learning.{name}": value for name, value in map(parsed, assignments)})


def _print(about: dict[str, Any]) -> None:
    from unveil.runs.exposure_fit import quality_table, reading

    print_table(quality_table(about["quality"]), reading(about))


def print_table(shown: "PageTable", paragraphs: list[str]) -> None:
    """A table of a page, and what it says, for a terminal."""
    from rich.console import Console
    from rich.table import Table

    from unveil.report.page import Cell

    console = Console()
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(shown.columns):
        grid.add_column(column.title, justify="right" if place else "left", no_wrap=True)
    for row in shown.rows:
        grid.add_row(*(cell.text if isinstance(cell, Cell) else cell for cell in row))
    console.print(grid)
    legend = " · ".join(f"{column.title}: {column.about}" for column in shown.columns if column.about)
    if legend:
        console.print(legend, style="dim", highlight=False)
    for paragraph in paragraphs:
        console.print()
        console.print(paragraph, highlight=False)
    console.print()
