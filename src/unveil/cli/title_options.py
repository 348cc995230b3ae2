"""The options of commands that call items by their titles."""

from pathlib import Path
from typing import Annotated

import typer

Titles = Annotated[
    Path | None, typer.Option(help="Titles of the items: movies.dat, u.item, or a CSV file with an id and a title.")
]
TitleIds = Annotated[
    Path | None, typer.Option(help="Pairs of ids, the log's and the titles', where the log was renumbered.")
]
