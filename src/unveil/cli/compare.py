"""`unveil compare RUN RUN…`: paired tests per user, corrected for their number."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from unveil.errors import UnveilError


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, two or more.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help=".html: a page, with every pair's test as CSV beside it; .csv: these alone."
        ),
    ] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Level of significance.")] = 0.05,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Compare runs on the same cases: means, and which differences are more than chance."""
    from unveil.cli.results import print_comparison
    from unveil.evaluation.result import Evaluation
    from unveil.evaluation.result import compare as compared
    from unveil.files import write_whole
    from unveil.runs.finished import short_names
    from unveil.runs.report import Judgements
    from unveil.runs.report_page import TARGETS, write_comparison

    if output is not None:
        _refuse_unfit(output, overwrite=overwrite)
    names = short_names([run.resolve() for run in runs])
    judged = {name: Evaluation.read(run) for name, run in zip(names, runs, strict=True)}
    comparison = compared(judged, alpha=alpha)
    if output is not None and output.suffix == ".csv":
        write_whole(output, comparison.tests.write_csv())
    elif output is not None:
        write_comparison(Judgements(judged, comparison), output, ["unveil", *sys.argv[1:]])
    print_comparison(comparison)
    typer.echo(TARGETS)
    if output is not None and output.suffix != ".csv":
        typer.echo(f"open {output}")


def _refuse_unfit(output: Path, *, overwrite: bool) -> None:
    """Before any work is done: a page or a table, and nothing that is there is buried."""
    from unveil.files import refuse_existing
    from unveil.report.svg import refuse_unfit_page
    from unveil.runs.report_page import beside

    if output.suffix == ".csv":
        refuse_existing(output, overwrite=overwrite)
    elif output.suffix.lower() in (".html", ".htm"):
        refuse_unfit_page(output, [beside(output)], what="the comparison", overwrite=overwrite)
    else:
        found = output.suffix or "no ending"
        raise UnveilError("unknown kind of file", where=output, found=found, expected=".html or .csv")
