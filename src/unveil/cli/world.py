"""`unveil world fit|draw|describe`: simulated worlds whose relevance and exposure are known."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.options import LogOptions, takes_options
from unveil.cli.study_options import CHOICES
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from rich.table import Table

    from unveil.data.interactions import Interactions
    from unveil.simulation.world import World


app = typer.Typer(help="Worlds whose relevance and exposure are known.", no_args_is_help=True)


@app.command("fit")
@takes_options
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
    from unveil.cli.terminal import bar, write_where_possible
    from unveil.files import refuse_occupied
    from unveil.runs.world_page import write_world_page
    from unveil.simulation.fit import fit_of, fit_world

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


_BUILTIN = "builtin"


@app.command("draw")
def draw(
    world: Annotated[str, typer.Argument(help="'builtin', or the folder of a saved world.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .csv, .tsv, .jsonl, .parquet, .inter; also .gz, .zst."),
    ],
    severity: Annotated[
        float | None, typer.Option(help="Exponent p of exposure, above 0; by default the world's own.")
    ] = None,
    foresight: Annotated[
        float,
        typer.Option(
            help="How far exposure follows relevance, in logits per standard deviation of relevance; 0: as it is."
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw, and of the built-in world.")] = 0,
    choice: Annotated[
        str,
        typer.Option(help=f"How users choose: {CHOICES}"),
    ] = "rational_exposed",
    relevance_draw: Annotated[
        bool, typer.Option(help="Keep a choice only where it pleases, with probability γ; or keep every choice.")
    ] = True,
    ratings: Annotated[
        bool, typer.Option("--ratings", help="Rate what is taken: its relevance logit, with an error.")
    ] = False,
    ratings_noise: Annotated[float, typer.Option(help="Standard deviation of the error of ratings.")] = 1.0,
    stars: Annotated[bool, typer.Option("--stars", help="Round the ratings to 1 … 5.")] = False,
    impressions: Annotated[
        float | None,
        typer.Option(
            help="Also record this share of what is shown and left, above 0 and at most 1: rows with `clicked` false."
        ),
    ] = None,
    save_world: Annotated[
        Path | None,
        typer.Option(
            help="Also save the world as it was drawn from, with its severity and foresight: "
            "the folder for `unveil train --world`."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Draw a log, each event with its own step, its true propensity and, if asked for, a rating."""
    import numpy as np

    from unveil.cli.terminal import bar
    from unveil.data.writers import write
    from unveil.files import refuse_existing, refuse_occupied
    from unveil.simulation.choice import choice_model
    from unveil.simulation.generate import Impressions, Ratings
    from unveil.simulation.world import World
    from unveil.wording import quantity

    refuse_existing(output, overwrite=overwrite)
    if save_world is not None:
        refuse_occupied(save_world, overwrite=overwrite)
    choice_model(choice)
    rated = Ratings(ratings_noise, stars) if ratings or stars else None
    if impressions is not None:
        Impressions(impressions)
    saved = World.builtin(seed=seed) if world == _BUILTIN else World.load(Path(world))
    source = saved if severity is None else saved.with_severity(severity)
    source = source.with_foresight(foresight)
    with bar("drawing the log") as progress:
        log = source.log(
            np.random.default_rng(seed),
            choice,
            relevance_draw=relevance_draw,
            ratings_noise=rated.noise if rated else None,
            stars=stars,
            impressions=impressions,
            progress=progress,
        )
    _refuse_empty(log, source)
    write(log, output)
    left = "" if impressions is None else f", and {quantity(len(log.skipped()), 'impression')} of what was left"
    typer.echo(f"{output}: {log.interacted()}{left}, drawn from {source!r}")
    if impressions is not None:
        recorded = f"--set propensity.name=recorded-temporal --set propensity.rate={impressions:g}"
        typer.echo(f"to learn exposure from what was left: unveil train {output} -e corrected {recorded}")
    if save_world is not None:
        source.save(save_world, overwrite=overwrite)
        typer.echo(f"{save_world}: that world; to train on its truth: unveil train {output} --world {save_world}")
    elif _differs(source, saved) or (world == _BUILTIN and seed):
        typer.echo("that world is not saved: to train on its truth, draw with --save-world DIR")


def _refuse_empty(log: "Interactions", source: "World") -> None:
    if not len(log):
        hint = "Lower --severity: at this one next to nothing is ever exposed."
        raise UnveilError(f"nothing was taken in {source!r}", hint=hint)


def _differs(source: "World", saved: "World") -> bool:
    return source.severity != saved.severity or source.exposure_logits is not saved.exposure_logits


@app.command("describe")
def describe(
    world: Annotated[str, typer.Argument(help="'builtin', or the folder of a saved world.")],
    severity: Annotated[
        float | None, typer.Option(help="Exponent p of exposure, above 0; by default the world's own.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the built-in world.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Describe a world: its size, its favourites, how far relevance and exposure differ, and where it comes from."""
    from unveil.simulation.world import World

    source = World.builtin(seed=seed) if world == "builtin" else World.load(Path(world))
    source = source if severity is None else source.with_severity(severity)
    (print_json if json else print_world)(source)


_AGAIN = "Fit the world again; --json shows what there is."


def print_json(world: "World") -> None:
    """The figures, and where the world comes from."""
    import json
    from dataclasses import asdict

    typer.echo(json.dumps({**asdict(world.describe()), "origin": world.origin}, indent=2))


def print_world(world: "World") -> None:
    """How well the world was fitted, if it was; its figures; where it comes from."""
    from rich.console import Console

    from unveil.simulation.describe import rows

    console = Console(highlight=False)
    try:
        fit = [_fit_table(world.origin), ""] if world.origin.get("kind") == "fitted" else []
        origin = _origin(world.origin)
    except (KeyError, TypeError, ValueError) as error:
        raise UnveilError(f"a damaged world: it does not say how it was fitted ({error})", hint=_AGAIN) from error
    console.print(*fit)
    table = _table("", "")
    for label, value in rows(world.describe()):
        table.add_row(label, value)
    console.print(table)
    console.print(origin, style="dim", soft_wrap=True)


def _fit_table(origin: dict[str, Any]) -> "Table":
    """A row for each predictor, on tuples that were not learnt from."""
    from unveil.report.page import Cell
    from unveil.runs.world_page import fit_table

    shown = fit_table(origin)
    table = _table(*(column.title for column in shown.columns))
    for row in shown.rows:
        table.add_row(*(cell.text if isinstance(cell, Cell) else cell for cell in row))
    return table


def _origin(origin: dict[str, Any]) -> str:
    if origin.get("kind") == "fitted":
        settings = origin["settings"]
        learnt = f"from {origin['relevance']['tuples']:,} ratings of the log {origin['log']}"
        return f"Fitted {learnt} by the recipe {origin['recipe']!r}, seed {settings['seed']}."
    if origin.get("kind") == "builtin":
        return f"The built-in world, seed {origin.get('seed')}."
    return f"Origin: {origin.get('kind', 'unknown')}."


def _table(*titles: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(titles))
    for place, title in enumerate(titles):
        table.add_column(title, justify="right" if place else "left", no_wrap=True)
    return table
