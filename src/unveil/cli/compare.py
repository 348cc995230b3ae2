"""`unveil compare RUN RUN…`: paired tests per user, corrected for their number."""

from pathlib import Path
from typing import Annotated

import typer

from unveil.errors import UnveilError


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, two or more.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write every pair's test as CSV.")] = None,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Level of significance.")] = 0.05,
) -> None:
    """Compare runs on the same cases: means, and which differences are more than chance."""
    from unveil.cli.results import print_comparison
    from unveil.evaluation.compare import compare as compared
    from unveil.evaluation.result import Evaluation
    from unveil.files import write_whole

    names = _short_names([run.resolve() for run in runs])
    comparison = compared({name: Evaluation.read(run) for name, run in zip(names, runs, strict=True)}, alpha=alpha)
    if output is not None:
        write_whole(output, comparison.tests.write_csv())
    print_comparison(comparison)


def _short_names(folders: list[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    if len(set(folders)) < len(folders):
        raise UnveilError("the same run was named twice", found=", ".join(map(str, folders)))
    longest = max(len(folder.parts) for folder in folders)
    ends = ([str(Path(*folder.parts[-depth:])) for folder in folders] for depth in range(1, longest + 1))
    return next(names for names in ends if len(set(names)) == len(names))
