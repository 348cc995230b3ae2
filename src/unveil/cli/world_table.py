"""A world as tables for people and as JSON for programs."""

from typing import TYPE_CHECKING, Any

import typer

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from rich.table import Table

    from unveil.simulation.world import World

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
