"""`unveil report RUN… -o FOLDER`: finished runs side by side on one page."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.title_options import TitleIds, Titles

if TYPE_CHECKING:
    from unveil.runs.report import Report


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, one or more.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write: index.html, results.json, …")],
    titles: Titles = None,
    title_ids: TitleIds = None,
    users: Annotated[
        str | None, typer.Option(metavar="ID,ID", help="Users whose lists are shown; if not given, three are picked.")
    ] = None,
    dial: Annotated[bool, typer.Option("--dial/--no-dial", help="Measure novelty against accuracy.")] = True,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="Level of significance.")] = 0.05,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Compare runs on one page: metrics with intervals, tests, calibration, novelty, training, and lists by title.

    The runs must have learnt from the same log and been judged on the same cases and negatives.
    """
    from unveil.cli.progress import bar
    from unveil.files import atomic_folder, refuse_occupied
    from unveil.runs.report import Asked
    from unveil.runs.report import report as compared
    from unveil.runs.report_page import write_report

    refuse_occupied(output, overwrite=overwrite, inputs=runs)
    named = [user.strip() for user in (users or "").split(",") if user.strip()]
    asked = Asked(titles, title_ids, named, dial, alpha)
    with bar("asking the models") as progress:
        found = compared(runs, asked, progress)
    with atomic_folder(output, overwrite=overwrite) as draft:
        write_report(found, draft, ["unveil", *sys.argv[1:]])
    _print(found, output)


def _print(found: "Report", output: Path) -> None:
    from rich.console import Console

    from unveil.runs.report_page import caution, reading

    console = Console()
    for paragraph in (*reading(found), caution(found)):
        console.print(paragraph, highlight=False)
        console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
