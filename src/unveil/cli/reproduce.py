"""`unveil reproduce rq1|rq2|rq3|rq5|fig1`: the paper's questions, and its first figure."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.fig1 import fig1
from unveil.cli.grouped import takes
from unveil.cli.rq5 import rq5
from unveil.cli.study_options import StudyOptions

if TYPE_CHECKING:
    from unveil.experiment.reproduce.run import Answer

app = typer.Typer(help="The research questions of the paper: run again, and set beside it.", no_args_is_help=True)

Severity = Annotated[float, typer.Option(help="Exponent p of exposure, θ = ô^p; above 0.")]

Severities = Annotated[
    list[float] | None, typer.Option(help="An exponent p of exposure; repeat for more. By default 1, 2, 3 and 4.")
]
#: The paper's severities.
ALONG = (1.0, 2.0, 3.0, 4.0)


@app.command("rq1")
@takes(StudyOptions)
def rq1(*, options: StudyOptions, severity: Severity = 1.0) -> None:
    """How well does each estimator capture the true relevance? A run that was stopped goes on with the same command."""
    _run("rq1", options, (severity,))


@app.command("rq2")
@takes(StudyOptions)
def rq2(*, options: StudyOptions, severity: Severities = None) -> None:
    """How robust is each estimator to increasing exposure bias?"""
    _run("rq2", options, tuple(severity or ALONG))


@app.command("rq3")
@takes(StudyOptions)
def rq3(*, options: StudyOptions, severity: Severity = 1.0) -> None:
    """How much does it matter to evaluate on true relevance? The cells are RQ1's: see --from."""
    _run("rq3", options, (severity,))


app.command("fig1")(fig1)
app.command("rq5")(rq5)


def _run(name: str, options: StudyOptions, severities: tuple[float, ...]) -> None:
    from unveil.experiment.grid.processes import Processes, cores
    from unveil.experiment.grid.progress import grid_watcher
    from unveil.experiment.grid.stopping import asked_to_stop
    from unveil.experiment.reproduce.catalogue import QUESTIONS
    from unveil.experiment.reproduce.files import write
    from unveil.experiment.reproduce.run import answer

    plan, output = options.plan(severities), options.output
    engine = Processes(options.jobs or cores())
    try:
        with asked_to_stop():
            found = answer(QUESTIONS[name], plan, output, engine, watch=grid_watcher(), take_from=options.take_from)
            write(found, output, _command(sys.argv[1:]))
    except KeyboardInterrupt as stop:
        typer.echo(f"unveil: {str(stop) or 'stopped'} in {output}. Go on with the same command.", err=True)
        raise typer.Exit(130) from None
    _print(found, output)


def _command(words: list[str]) -> list[str]:
    """The command that gives these files again; the number of workers is no part of it."""
    kept = [word for before, word in zip(["", *words], words, strict=False) if "--jobs" not in (before, word)]
    return ["unveil", *(word for word in kept if not word.startswith("--jobs="))]


def _print(answer: "Answer", output: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.experiment.reproduce.words import caution

    console = Console()
    for sheet in answer.question.sheets(answer):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for place, title in enumerate(sheet.head):
            table.add_column(title, justify="right" if place else "left", no_wrap=True)
        for row in sheet.rows:
            table.add_row(*row)
        for part in (sheet.title, table, sheet.foot, ""):
            console.print(part, highlight=False)
    for paragraph in (*answer.question.reading(answer), caution(answer.results)):
        console.print(paragraph, highlight=False)
        console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
