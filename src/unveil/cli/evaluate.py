"""`unveil evaluate RUN`: judge a finished run again, on the same cases and negatives."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` wrote.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Show the run on its page, index.html, anew.")] = True,
) -> None:
    """Rank every held-out event again: full ranking, uniform and popularity-drawn negatives side by side."""
    from unveil.cli.pages import write_where_possible
    from unveil.cli.results import print_evaluation
    from unveil.runs.report_page import write_run_page
    from unveil.runs.train import evaluate as judge

    evaluation = judge(run)
    if json:
        typer.echo(evaluation.summary.write_json())
    else:
        print_evaluation(evaluation)
    if page:
        write_where_possible(lambda: write_run_page(run, ["unveil", *sys.argv[1:]]), aside=json)
