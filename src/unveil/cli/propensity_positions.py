"""`unveil propensity positions LOG`: how often each position of a list is looked at."""

from typing import Annotated

import typer

from unveil.cli.log_options import LogOptions, takes_log


@takes_log
def positions(
    *,
    options: LogOptions,
    deepest: Annotated[
        int, typer.Option(min=0, help="Count all positions from this one on as one; 0: each is its own.")
    ] = 0,
    draws: Annotated[int, typer.Option(min=1, help="Draws of the impressions, for the intervals.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Seed of these draws.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Tell how often each position is looked at, apart from what is placed there, by items shown at several."""
    from dataclasses import asdict

    from unveil.cli.propensity import print_table
    from unveil.runs.positions import looked_at, reading, table

    found = looked_at(options.source().load(), deepest=deepest, draws=draws, seed=seed)
    if json:
        import json as as_json

        typer.echo(as_json.dumps(asdict(found), indent=1))
    else:
        print_table(table(found), reading(found))
