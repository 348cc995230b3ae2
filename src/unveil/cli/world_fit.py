"""`unveil world fit LOG -o WORLD`: the world behind a log with ratings."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.log_options import LogOptions, takes_log

if TYPE_CHECKING:
    from unveil.data.interactions import Interactions
    from unveil.simulation.fit import Fit


@takes_log
def fit(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the world.")],
    steps: Annotated[int, typer.Option(min=1, help="T: the last events of each history that count.")] = 100,
    recipe: Annotated[
        str, typer.Option(help="posterior (a draw that keeps what is personal), regularised or paper.")
    ] = "posterior",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    severity: Annotated[float, typer.Option(help="Exponent p of exposure, above 0.")] = 1.0,
    centre: Annotated[
        float, typer.Option(help="The rating that pleases every second time: γ = σ(r − centre); the paper's is 0.")
    ] = 0.0,
    negatives: Annotated[int, typer.Option(min=1, help="Tuples drawn as not exposed for each that was.")] = 3,
    redraw: Annotated[bool, typer.Option(help="Draw the negatives anew for each epoch.")] = True,
    real_lengths: Annotated[
        bool, typer.Option("--real-lengths", help="Users are there as long as their history, not at all steps.")
    ] = False,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Change an option of the recipe, e.g. width=50, exposure.width=10."
        ),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose sizes on the validation part; kept in WORLD.tuning.jsonl.")
    ] = False,
    replicates: Annotated[int, typer.Option(min=1, help="Fits of each size when tuning.")] = 3,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Learn relevance from ratings and exposure from what was interacted with; write them as a world."""
    from unveil.cli.pages import write_where_possible
    from unveil.cli.progress import bar
    from unveil.cli.world_table import print_world
    from unveil.experiment.world_page import write_world_page
    from unveil.files import refuse_occupied
    from unveil.simulation.fit import Fit, fit_world

    refuse_occupied(output, overwrite=overwrite, inputs=[options.log])
    relevance, exposure = _options(assignments or [])
    wanted = Fit(steps, recipe, relevance, exposure, seed, centre, negatives, redraw, real_lengths, severity)
    log = options.source().load()
    if tune:
        wanted = _tuned(log, wanted, replicates, output)
    with bar("fitting relevance and exposure") as progress:
        fitted = fit_world(log, wanted, progress)
    fitted.world.save(output, overwrite=overwrite)
    print_world(fitted.world)
    typer.echo(f"the world is in {output}; next: unveil world draw {output} -o log.csv")
    write_where_possible(lambda: write_world_page(fitted.world, output / "index.html", ["unveil", *sys.argv[1:]]))


def _options(assignments: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`name=value` for both, `relevance.name=value` and `exposure.name=value` for one of them."""
    from unveil.errors import unknown
    from unveil.settings import parsed

    options: dict[str, dict[str, Any]] = {"relevance": {}, "exposure": {}}
    for name, value in map(parsed, assignments):
        task, _, option = name.rpartition(".")
        if task and task not in options:
            raise unknown("part of a world", task, options, where=f"--set {name}")
        for each in [task] if task else options:
            options[each][option] = value
    return options["relevance"], options["exposure"]


def _tuned(log: "Interactions", fit: "Fit", replicates: int, output: Path) -> "Fit":
    from unveil.cli.progress import bar
    from unveil.simulation.fitting.tune import tuned

    kept = output.with_name(f"{output.name}.tuning.jsonl")
    with bar("tuning") as progress:
        chosen = tuned(log, fit, replicates, kept, progress)
    typer.echo(f"best on validation: relevance {_shown(chosen.relevance)}; exposure {_shown(chosen.exposure)}")
    return chosen


def _shown(options: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())
