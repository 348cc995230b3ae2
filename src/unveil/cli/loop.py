"""`unveil loop LOG -o DIR`: models retrained, round after round, on what users chose from their recommendations."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import Address, EngineOption, Jobs, LogOptions, takes_options
from unveil.cli.terminal import command_of, wide_enough

if TYPE_CHECKING:
    from unveil.runs.workers import Engine
    from unveil.simulation.world import World
    from unveil.studies.loop import LoopPlan
    from unveil.studies.loop_report import LoopReport

#: Models whose first and last figures fit beside each other in eighty columns.
_SIDE_BY_SIDE = 3


@takes_options
def loop(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the loop; new, or one to --resume.")],
    estimators: Annotated[
        str,
        typer.Option("--estimators", "-e", help="Models, with commas between; also the rules popularity and random."),
    ] = "naive,popularity,random",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of feedback; one training more, before the first.")] = 10,
    k: Annotated[int, typer.Option("-k", min=1, help="Items recommended to every user in a round.")] = 10,
    response: Annotated[
        str,
        typer.Option(help="uniform, position, geometric, popular, logit; in a world also relevant, logit-relevance."),
    ] = "uniform",
    retrain: Annotated[str, typer.Option(help="scratch, warm, warm:EPOCHS or every:ROUNDS.")] = "scratch",
    replicates: Annotated[int, typer.Option(min=1, help="Repeat everything random.")] = 1,
    preset: Annotated[
        str, typer.Option(help="quick, paper or converged; epochs are fixed, nothing is held out.")
    ] = "quick",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of all models, of one (ips:NAME) or response.NAME."
        ),
    ] = None,
    world: Annotated[
        str | None, typer.Option(help="Folder of the world the log was drawn from, or 'builtin': relevance is known.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    jobs: Jobs = None,
    engine: EngineOption = "processes",
    address: Address = None,
    keep_logs: Annotated[
        bool, typer.Option("--keep-logs", help="Also write the log after the last round, for each model.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a loop that was stopped; also with more rounds.")
    ] = False,
) -> None:
    """Simulate a feedback loop: recommend, let users respond, retrain on their choices; and measure what happens."""
    from unveil.runs.workers import engine as engine_of
    from unveil.studies.loop import LoopConfig, LoopPlan

    config = LoopConfig(rounds, k, {"name": response}, retrain, replicates, seed)
    plan = LoopPlan.of(config, models_of(estimators), preset, assignments or [])
    workers = engine_of(engine, jobs, address)
    run_and_print(plan, options, output, workers, world, keep_logs=keep_logs, resume=resume)


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


def _world(where: str | None) -> "World | None":
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
