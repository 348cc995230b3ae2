"""Who does the work of a grid: options that all commands with one share."""

from enum import StrEnum
from typing import Annotated

import typer

PANEL = "Who does the work"


class EngineName(StrEnum):
    """What does the jobs of a grid."""

    processes = "processes"
    ray = "ray"


Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, help="Worker processes, by default one a core; no figure depends on it.", rich_help_panel=PANEL
    ),
]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Processes of this machine, or a Ray cluster.", rich_help_panel=PANEL)
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Where the Ray cluster is; without it, Ray runs here.", rich_help_panel=PANEL
    ),
]

#: Options that change no figure, and so are no part of the command that gives the same figures again.
OF_NO_CONSEQUENCE = ("--jobs", "--engine", "--address")
