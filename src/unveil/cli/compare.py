"""`unveil compare RUN RUN…`: paired tests per user, corrected for their number."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, two or more.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write every pair's test as CSV.")] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Level of significance.")] = 0.05,
) -> None:
    """Compare runs on the same cases: means, intervals, and which differences are more than chance."""
    from unveil.cli.results import print_comparison
    from unveil.evaluation.compare import compare as compared
    from unveil.evaluation.result import Evaluation
    from unveil.files import atomic_file

    comparison = compared({run.name or str(run): Evaluation.read(run) for run in runs}, alpha=alpha)
    if output is not None:
        with atomic_file(output) as draft:
            comparison.tests.write_csv(draft)
    print_comparison(comparison)
