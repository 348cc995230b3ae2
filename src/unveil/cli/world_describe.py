"""`unveil world describe WORLD`: how large a world is, how personal its relevance, how unequal its exposure."""

from pathlib import Path
from typing import Annotated

import typer


def describe(
    world: Annotated[str, typer.Argument(help="'builtin', or the folder of a saved world.")],
    severity: Annotated[
        float | None, typer.Option(help="Exponent p of exposure, above 0; by default the world's own.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the built-in world.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Describe a world: its size, its favourites, how far relevance and exposure differ, and where it comes from."""
    from unveil.cli.world_table import print_json, print_world
    from unveil.simulation.world import World

    source = World.builtin(seed=seed) if world == "builtin" else World.load(Path(world))
    source = source if severity is None else source.with_severity(severity)
    (print_json if json else print_world)(source)
