"""`unveil demo|theory`: the method on a built-in world, and the paper's propositions checked."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from unveil.cli.options import Jobs
from unveil.cli.terminal import command_of, until_stopped


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder to write: index.html, README.md, results.json, results.csv, log.csv, world/."
        ),
    ] = Path("demo"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what the folder holds.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the world, the log and the trainings.")] = 0,
    users: Annotated[int, typer.Option(min=1, help="Users of the world.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of each training.")] = 80,
    replicates: Annotated[
        int, typer.Option(min=1, help="Repeat everything random, the world included; about a minute each.")
    ] = 1,
    jobs: Jobs = None,
) -> None:
    """Show on a built-in world with known ground truth what a log hides, and what several losses learn from it.

    A run that was stopped continues with the same command; --overwrite begins again.
    """
    from unveil.files import atomic_folder
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import engine
    from unveil.studies.demo import Demo
    from unveil.studies.engine import run
    from unveil.studies.writer import print_report, write

    default = Demo()
    spec = replace(default.spec, users=users)
    study = default.model_copy(update={"spec": spec, "epochs": epochs, "replicates": replicates, "seed": seed})
    with (
        until_stopped(output),
        atomic_folder(output, overwrite=True) if overwrite else nullcontext(output) as folder,
    ):
        answer = run(study, folder, engine("processes", jobs), watch=job_watcher())
        report = write(answer, folder, command_of(sys.argv[1:]))
    print_report(report, output)


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
