"""`unveil demo|theory`: the method on a built-in world, and the paper's propositions checked."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from unveil.experiment.demo.run import Shown


def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder to write: index.html, results.json, results.csv, log.csv, world/."),
    ] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the world, the log and the trainings.")] = 0,
    users: Annotated[int | None, typer.Option(min=1, help="Users of the world; by default 1,000.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of each training; by default 80.")] = None,
    replicates: Annotated[
        int, typer.Option(min=1, help="Repeat everything random, the world included; about a minute each.")
    ] = 1,
) -> None:
    """Show on a built-in world what a log hides, and what four losses learn from it: the truth is known there."""
    from unveil.experiment.demo.progress import demo_watcher
    from unveil.experiment.demo.run import Demo, run_demo

    chosen = Demo(seed=seed, replicates=replicates).sized(users, epochs)
    with demo_watcher(chosen.trainings) as watch:
        shown = run_demo(output, chosen, overwrite=overwrite, watch=watch)
    _print(shown, output)


def _print(shown: "Shown", output: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from unveil.experiment.demo.table import FOOT, HEAD, log_line, rows
    from unveil.experiment.demo.words import caution, reading

    console = Console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, title in enumerate(HEAD):
        table.add_column(title, justify="right" if place else "left", no_wrap=True)
    for row in rows(shown.outcome):
        table.add_row(*row)
    console.print(log_line(shown.truth), highlight=False)
    console.print()
    console.print(table)
    for paragraph in (FOOT, *reading(shown.outcome), caution(shown.outcome)):
        console.print()
        console.print(paragraph, highlight=False)
    console.print()
    console.print(f"open {output / 'index.html'}", highlight=False, soft_wrap=True)


def theory(
    severity: Annotated[float, typer.Option(help="Exponent p of exposure: θ = ô^p, above 0, at most 10.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=2**62, help="Seed of the worlds, the scores and the draws.")] = 0,
    draws: Annotated[int, typer.Option(min=2, help="Logs drawn for each choice model.")] = 100,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write: index.html, results.json, results.csv.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
) -> None:
    """Check the paper's propositions: exactly on tiny worlds, by drawn logs on a larger one, in about half a minute."""
    import shutil

    from unveil.files import refuse_occupied
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import Inline
    from unveil.studies.engine import run
    from unveil.studies.theory import Theory
    from unveil.studies.writer import Report, print_report, write

    study = Theory(severity=severity, seed=seed, draws=draws)
    if output is None:
        with TemporaryDirectory() as folder:
            print_report(Report(run(study, Path(folder), Inline(), watch=job_watcher())))
        return
    if not (output / "run.json").exists() or overwrite:
        refuse_occupied(output, overwrite=overwrite)
    if overwrite:
        shutil.rmtree(output, ignore_errors=True)
    command = f"unveil theory --severity {severity:g} --seed {seed} --draws {draws} -o {output.name}"
    print_report(write(run(study, output, Inline(), watch=job_watcher()), output, command.split()), output)
