"""`unveil world draw WORLD -o LOG`: a log from a world whose truth is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.study_options import CHOICES
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.data.interactions import Interactions
    from unveil.simulation.world import World

_BUILTIN = "builtin"


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

    from unveil.cli.progress import bar
    from unveil.data.writers import write
    from unveil.files import refuse_existing, refuse_occupied
    from unveil.simulation.choice import choice_model
    from unveil.simulation.impressions import Impressions
    from unveil.simulation.ratings import Ratings
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
