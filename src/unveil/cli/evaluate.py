"""`unveil evaluate|compare|report`: finished runs, their metrics and tests."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import AsJson, Overwrite, TitleIds, Titles, option
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.runs.report import Report


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder that `unveil train` wrote.")],
    json: AsJson = False,
    page: Annotated[bool, option("Show the run on its page, index.html, anew.", "--page/--no-page")] = True,
) -> None:
    """Rank every held-out event again: full ranking, uniform and popularity-drawn negatives side by side."""
    from unveil.cli.results import print_evaluation
    from unveil.cli.terminal import write_where_possible
    from unveil.runs.finished import read_runs
    from unveil.runs.report_page import write_run_page
    from unveil.runs.train import evaluate as judge

    evaluation = judge(run)
    if json:
        typer.echo(evaluation.summary.write_json())
    else:
        print_evaluation(evaluation)
    if page:
        write_where_possible(lambda: write_run_page(read_runs([run])[0], ["unveil", *sys.argv[1:]]), aside=json)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, two or more.")],
    output: Annotated[
        Path | None,
        option(".html: a page, with every pair's test as CSV beside it; .csv: these alone.", "--output", "-o"),
    ] = None,
    alpha: Annotated[float, option("Level of significance.", min=0, max=1)] = 0.05,
    overwrite: Overwrite = False,
) -> None:
    """Compare runs on the same cases: means, and which differences are more than chance."""
    from unveil.cli.results import print_comparison
    from unveil.evaluation.result import Evaluation
    from unveil.evaluation.result import compare as compared
    from unveil.files import write_whole
    from unveil.runs.finished import short_names
    from unveil.runs.report import ComparedRuns
    from unveil.runs.report_page import targets_caution, write_comparison

    if output is not None:
        _refuse_unfit(output, overwrite=overwrite)
    names = short_names([run.resolve() for run in runs])
    judged = {name: Evaluation.read(run) for name, run in zip(names, runs, strict=True)}
    comparison = compared(judged, alpha=alpha)
    if output is not None and output.suffix == ".csv":
        write_whole(output, comparison.tests.write_csv())
    elif output is not None:
        write_comparison(ComparedRuns(judged, comparison), output, ["unveil", *sys.argv[1:]])
    print_comparison(comparison)
    typer.echo(targets_caution())
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


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that `unveil train` wrote, one or more.")],
    output: Annotated[Path, option("Folder to write: index.html, results.json, …", "--output", "-o")],
    titles: Titles = None,
    title_ids: TitleIds = None,
    users: Annotated[
        str | None, option("Users whose lists are shown; if not given, three are picked.", metavar="ID,ID")
    ] = None,
    dial: Annotated[bool, option("Measure novelty against accuracy.", "--dial/--no-dial")] = True,
    alpha: Annotated[float, option("Level of significance.", min=0, max=1)] = 0.05,
    overwrite: Overwrite = False,
) -> None:
    """Compare runs on one page: metrics with intervals, tests, calibration, novelty, training, and lists by title.

    The runs must have learnt from the same log and been judged on the same cases and negatives.
    """
    from unveil.cli.terminal import bar
    from unveil.files import atomic_folder, refuse_occupied
    from unveil.runs.finished import read_runs
    from unveil.runs.report import ReportOptions
    from unveil.runs.report import report as compared
    from unveil.runs.report_page import write_report

    refuse_occupied(output, overwrite=overwrite, inputs=runs)
    named = [user.strip() for user in (users or "").split(",") if user.strip()]
    options = ReportOptions(titles, title_ids, named, dial, alpha)
    with bar("evaluating the models") as progress:
        found = compared(read_runs(runs), options, progress)
    with atomic_folder(output, overwrite=overwrite) as draft:
        write_report(found, draft, ["unveil", *sys.argv[1:]])
    _print(found, output)


def _print(found: "Report", output: Path) -> None:
    from rich.console import Console

    from unveil.runs.report_page import findings

    console = Console()
    for paragraph in findings(found):
        console.print(paragraph, highlight=False)
        console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
