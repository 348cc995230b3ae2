"""`unveil data describe LOG`: counts, lengths, sparsity, time span, ties, repeats, popularity skew."""

from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.log_options import LogOptions, takes_log

if TYPE_CHECKING:
    from unveil.data.describe import Description


@takes_log
def describe(
    *,
    options: LogOptions,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Describe a log as it is and, where filters are asked for, what they leave."""
    from unveil.data.describe import describe as figures
    from unveil.data.filters import Filters

    source = options.source()
    log = source.read()
    described = {"as it is": figures(log)}
    if source.filters != Filters():
        described["after filters"] = figures(source.filters(log))
    if json:
        _print_json(described)
    else:
        _print_table(options.log, described)


def _print_json(described: "dict[str, Description]") -> None:
    import json
    from dataclasses import asdict

    typer.echo(json.dumps({name: asdict(figures) for name, figures in described.items()}, indent=2))


def _print_table(title: str, described: "dict[str, Description]") -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.data.describe import TIE_RULE, rows

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in described:
        table.add_column(name, justify="right")
    for label, *cells in zip(*_columns([rows(figures) for figures in described.values()]), strict=True):
        table.add_row(label, *cells)
    console = Console()
    console.print(table)
    if any(figures.ties is not None and figures.ties.events for figures in described.values()):
        console.print(f"Ties: {TIE_RULE}.", style="dim")


def _columns(described: list[list[tuple[str, str]]]) -> list[list[str]]:
    """The labels once, then one column of values for each description."""
    return [[label for label, _ in described[0]], *([value for _, value in pairs] for pairs in described)]
