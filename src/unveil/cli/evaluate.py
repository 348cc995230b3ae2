"""`unveil evaluate RUN`: judge a finished run again, on the same cases and negatives."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` wrote.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Rank every held-out event again: full ranking, uniform and popularity-drawn negatives side by side."""
    from unveil.cli.results import print_evaluation
    from unveil.experiment.run import evaluate as judge

    evaluation = judge(run)
    if json:
        typer.echo(evaluation.summary.write_json())
    else:
        print_evaluation(evaluation)
