"""Pages of commands that can do without one: written where what they are made with is installed."""

from collections.abc import Callable
from pathlib import Path

import typer

MISSING = "no page: pages need jinja2 and matplotlib; pip install 'unveil[report]'"


def write_where_possible(write: Callable[[], Path], *, aside: bool = False) -> None:
    """Write the page and say where it is, or say what is missing; `aside`, on standard error."""
    from unveil.report.page import can_be_written

    typer.echo(f"open {write()}" if can_be_written() else MISSING, err=aside)
