"""`unveil world draw WORLD -o LOG`: a log from a world whose truth is known."""

from pathlib import Path
from typing import Annotated

import typer


def draw(
    world: Annotated[str, typer.Argument(help="'builtin', or the folder of a saved world.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write: .csv, .tsv, .jsonl, .parquet, .inter; also .gz, .zst."),
    ],
    severity: Annotated[
        float | None, typer.Option(help="Exponent p of exposure, above 0; by default the world's own.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw, and of the built-in world.")] = 0,
    choice: Annotated[
        str, typer.Option(help="rational_exposed, rational_all, categorical_exposed or categorical_all.")
    ] = "rational_exposed",
    relevance_draw: Annotated[
        bool, typer.Option(help="Keep a choice only where it pleases, with probability γ.")
    ] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Draw a log, each event with its own step and its true propensity."""
    import numpy as np

    from unveil.cli.progress import bar
    from unveil.data.sinks import write
    from unveil.files import refuse_existing
    from unveil.simulation.world import World

    refuse_existing(output, overwrite=overwrite)
    source = World.builtin(seed=seed) if world == "builtin" else World.load(Path(world))
    source = source if severity is None else source.with_severity(severity)
    with bar("drawing the log") as progress:
        log = source.log(np.random.default_rng(seed), choice, relevance_draw=relevance_draw, progress=progress)
    write(log, output)
    typer.echo(f"{output}: {log!r}, drawn from {source!r}")
