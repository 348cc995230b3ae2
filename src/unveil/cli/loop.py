"""`unveil loop LOG -o DIR`: models retrained, round after round, on what users chose from their recommendations."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import Assignments, LogOptions, Seed, WorkerOptions, World, option, takes_options
from unveil.cli.terminal import command_of, wide_enough

if TYPE_CHECKING:
    from unveil.runs.workers import Engine
    from unveil.simulation import world as worlds
    from unveil.studies.loop import LoopPlan
    from unveil.studies.loop_report import LoopReport

#: Models whose first and last figures fit beside each other in eighty columns.
_SIDE_BY_SIDE = 3


@takes_options
def loop(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the loop; new, or one to --resume.", "--output", "-o")],
    estimators: Annotated[
        str, option("Models, with commas between; also popularity and random.", "--estimators", "-e")
    ] = "naive,popularity,random",
    rounds: Annotated[int, option("Rounds of feedback after the first training.", min=1)] = 10,
    k: Annotated[int, option("Items recommended to every user in a round.", "-k", min=1)] = 10,
    response: Annotated[
        str, option("uniform, position, geometric, popular, logit; in a world also relevant, logit-relevance.")
    ] = "uniform",
    retrain: Annotated[str, option("scratch, warm, warm:EPOCHS or every:ROUNDS.")] = "scratch",
    replicates: Annotated[int, option("Repetitions of everything random.", min=1)] = 1,
    preset: Annotated[str, option("quick, paper or converged; with a fixed number of epochs.")] = "quick",
    assignments: Assignments = None,
    world: World = None,
    seed: Seed = 0,
    workers: WorkerOptions,
    keep_logs: Annotated[bool, option("Also write the last log of each model.", "--keep-logs")] = False,
    resume: Annotated[bool, option("Continue a loop that was stopped; also with more rounds.", "--resume")] = False,
) -> None:
    """Simulate a feedback loop: recommend, let users respond, retrain on their choices; and measure what happens.

    --set NAME=VALUE is for all models, itps:NAME=VALUE for one, response.NAME=VALUE for the users' response.
    """
    from unveil.studies.loop import LoopConfig, LoopPlan

    config = LoopConfig(rounds, k, {"name": response}, retrain, replicates, seed)
    plan = LoopPlan.of(config, models_of(estimators), preset, assignments or [])
    run_and_print(plan, options, output, workers.workers(), world, keep_logs=keep_logs, resume=resume)


def models_of(names: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in names.split(",") if name.strip()]


def run_and_print(
    plan: "LoopPlan",
    options: LogOptions,
    output: Path,
    engine: "Engine",
    world: str | None = None,
    *,
    keep_logs: bool = False,
    resume: bool = False,
) -> None:
    """Loop, write and print; a loop that is interrupted says how to go on."""
    from unveil.processes import sigterm_interrupts
    from unveil.runs.progress import job_watcher
    from unveil.studies.loop import run_loop
    from unveil.studies.loop_report import write

    watch = job_watcher(steps=plan.loop.rounds + 1)
    try:
        with sigterm_interrupts():
            log, truth = options.source().load(), _world(world)
            looped = run_loop(plan, log, output, engine, world=truth, resume=resume, keep_logs=keep_logs, watch=watch)
            report = write(looped, output, command_of([word for word in sys.argv[1:] if word != "--resume"]))
    except KeyboardInterrupt as stop:
        told = f"{str(stop) or 'stopped'} in {output}; the rounds that are over are kept"
        typer.echo(f"unveil: {told}. Go on with the same command and --resume.", err=True)
        raise typer.Exit(130) from None
    _print(report, output)


def _world(where: str | None) -> "worlds.World | None":
    from unveil.simulation.world import World

    if where is None:
        return None
    return World.builtin() if where == "builtin" else World.load(Path(where))


def _print(report: "LoopReport", output: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.report.page import Cell

    shown, console = report.table(), Console()
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(shown.columns):
        grid.add_column(column.title, justify="right" if place else "left", no_wrap=True)
    narrow = len(report.outcome.models) > _SIDE_BY_SIDE
    for row in shown.rows:
        cells = [cell.text if isinstance(cell, Cell) else cell for cell in row]
        grid.add_row(*(cell.split("→")[-1].strip() if narrow else cell for cell in cells))
    console.print(f"Round {report.outcome.rounds}" if narrow else shown.caption, highlight=False)
    wide_enough(console).print(grid)
    for paragraph in report.paragraphs:
        console.print()
        console.print(paragraph, highlight=False)
    console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)
