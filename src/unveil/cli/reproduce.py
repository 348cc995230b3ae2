"""`unveil reproduce rq1|rq2|rq3|rq4|rq5|fig1|beyond|assumptions|recipe`: the paper's questions, and others beyond."""

import sys
from typing import Annotated

import typer

from unveil.cli.assumptions import assumptions
from unveil.cli.beyond import BeyondOptions
from unveil.cli.fig1 import fig1
from unveil.cli.options import takes_options
from unveil.cli.recipe import RecipeOptions
from unveil.cli.rq4 import rq4
from unveil.cli.rq5 import rq5
from unveil.cli.study_options import StudyOptions
from unveil.cli.terminal import command_of, print_answer, until_stopped

app = typer.Typer(
    help="The research questions of the paper, run again and set beside it; and three beyond it.", no_args_is_help=True
)

Severity = Annotated[float, typer.Option(help="Exponent p of exposure, θ = ô^p; above 0.")]

Severities = Annotated[
    list[float] | None, typer.Option(help="An exponent p of exposure; repeat for more. By default 1, 2, 3 and 4.")
]
#: The paper's severities.
ALONG = (1.0, 2.0, 3.0, 4.0)


@app.command("rq1")
@takes_options
def rq1(*, options: StudyOptions, severity: Severity = 1.0) -> None:
    """How well does each estimator capture the true relevance? A run that was stopped goes on with the same command."""
    _run("rq1", options, (severity,))


@app.command("rq2")
@takes_options
def rq2(*, options: StudyOptions, severity: Severities = None) -> None:
    """How robust is each estimator to increasing exposure bias?"""
    _run("rq2", options, tuple(severity or ALONG))


@app.command("rq3")
@takes_options
def rq3(*, options: StudyOptions, severity: Severity = 1.0) -> None:
    """How much does it matter to evaluate on true relevance? The trainings are those of rq1: --from takes them over."""
    _run("rq3", options, (severity,))


@app.command("beyond")
@takes_options
def beyond(*, options: BeyondOptions, severity: Severities = None) -> None:
    """How near does each estimator of this package, the paper's and others, come to a loss that knows the truth?

    The gap that is closed: 0% is a loss that takes the log at its word (naive), 100% one told who likes what (ideal).

    By default these are 1,440 trainings; for a first look add --preset quick --worlds 1 --replicates 1 --severity 2.

    Trainings that rq2 has made with the same settings are taken over with --from.
    """
    _run("beyond", options, tuple(severity or ALONG))


@app.command("recipe")
@takes_options
def recipe(*, options: RecipeOptions, severity: Severities = None) -> None:
    """Does what the paper's recipe for real data (popularity^−exponent, popular negatives) reports as a gain hold?"""
    _run("recipe", options, tuple(severity or ALONG))


app.command("assumptions")(assumptions)
app.command("fig1")(fig1)
app.command("rq4")(rq4)
app.command("rq5")(rq5)


def _run(name: str, options: StudyOptions, severities: tuple[float, ...]) -> None:
    from unveil.experiment.reproduce.catalogue import QUESTIONS
    from unveil.experiment.reproduce.files import write
    from unveil.experiment.reproduce.run import answer
    from unveil.experiment.reproduce.words import caution
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import engine

    plan, output = options.plan(severities), options.output
    workers = engine(options.engine, options.jobs, options.address)
    with until_stopped(output):
        found = answer(
            QUESTIONS[name], plan, output, workers, watch=job_watcher(), take_from=options.take_from, tell=_say
        )
        write(found, output, command_of(sys.argv[1:]))
    question = found.question
    print_answer(question.sheets(found), [*question.reading(found), caution(found.results)], output)


def _say(text: str) -> None:
    typer.echo(text, err=True)
