"""`unveil compare RUN RUN…`: paired tests per user, corrected for their number."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, two or more.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write every pair's test as CSV.")] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Level of significance.")] = 0.05,
) -> None:
    """Compare runs on the same cases: means, and which differences are more than chance."""
    from unveil.cli.results import print_comparison
    from unveil.evaluation.compare import compare as compared
    from unveil.evaluation.result import Evaluation
    from unveil.experiment.compared.runs import short_names
    from unveil.files import write_whole

    names = short_names([run.resolve() for run in runs])
    comparison = compared({name: Evaluation.read(run) for name, run in zip(names, runs, strict=True)}, alpha=alpha)
    if output is not None:
        write_whole(output, comparison.tests.write_csv())
    print_comparison(comparison)
