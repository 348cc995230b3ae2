"""`unveil theory`: which losses are unbiased, for whom, and what they would learn; computed, not quoted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unveil.experiment.theory.run import Theory
    from unveil.report.page import Table


def theory(
    severity: Annotated[float, typer.Option(help="Exponent p of exposure: θ = ô^p, above 0, at most 10.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Seed of the worlds, the scores and the draws.")] = 0,
    draws: Annotated[int, typer.Option(min=2, help="Logs drawn for each way of choosing.")] = 100,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write: index.html, theory.json, theory.csv.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Check the paper's propositions: exactly on tiny worlds, by drawn logs on a larger one, in about half a minute."""
    from unveil.cli.progress import bar
    from unveil.experiment.theory.run import Settings, run_theory
    from unveil.files import refuse_occupied

    settings = Settings(severity=severity, seed=seed, draws=draws)
    if output is not None:
        refuse_occupied(output, overwrite=overwrite)
    with bar("drawing logs") as progress:
        found = run_theory(settings, output, overwrite=overwrite, told=progress)
    _print(found)
    if output is not None:
        typer.echo(f"\nopen {output / 'index.html'}")


def _print(found: "Theory") -> None:
    from rich.console import Console

    from unveil.experiment.theory import tables, words
    from unveil.report.page import Table

    console = Console()
    parts: list[tuple[str | Table, ...]] = [
        (words.claims(found.findings), tables.propositions(found)),
        (words.by_users(found), tables.choosers(found)),
        (words.drawn(found), *tables.estimated(found)),
        (words.minima(found), tables.example(found), tables.distances(found)),
        (*words.severities(found), tables.minimisers(found)),
        (words.SCALE, words.SCOPE),
    ]
    for section in parts:
        for part in section:
            console.print(part if isinstance(part, str) else _table(part), highlight=False)
            console.print()


def _table(table: "Table") -> object:
    from rich.table import Table as Printed

    printed = Printed(title=table.caption, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0))
    for column in table.columns:
        title = f"{column.title}\n{column.about}" if column.about else column.title
        printed.add_column(title, justify="right" if column.numeric else "left")
    for row in table.rows:
        printed.add_row(*(cell if isinstance(cell, str) else cell.text for cell in row))
    return printed
