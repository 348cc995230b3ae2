"""`unveil demo|theory`: the method on a built-in world, and the paper's propositions checked."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from unveil.cli.options import Jobs, Overwrite, Seed, option
from unveil.cli.terminal import command_of, until_stopped


def demo(
    output: Annotated[Path, option("Folder to write: page, results, log, world.", "--output", "-o")] = Path("demo"),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    users: Annotated[int, option("Users of the world.", min=1)] = 1000,
    epochs: Annotated[int, option("Epochs of each training.", min=1)] = 80,
    replicates: Annotated[int, option("Repetitions with other worlds; about a minute each.", min=1)] = 1,
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
    severity: Annotated[float, option("Exponent p of exposure: θ = ô^p, above 0, at most 10.")] = 1.0,
    seed: Annotated[int, option("Seed of the worlds, the scores and the draws.", min=0, max=2**62)] = 0,
    draws: Annotated[int, option("Logs drawn for each choice model.", min=2)] = 100,
    output: Annotated[Path | None, option("Folder to write: page and results.", "--output", "-o")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Check the paper's propositions: exactly on tiny worlds, by drawn logs on a larger one, in about half a minute."""
    from contextlib import nullcontext

    from unveil.files import atomic_folder, refuse_occupied
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import Inline
    from unveil.studies.engine import run
    from unveil.studies.theory import Theory
    from unveil.studies.writer import Report, print_report, write

    study = Theory(severity=severity, seed=seed, draws=draws)
    if output is None:
        with TemporaryDirectory() as place:
            print_report(Report(run(study, Path(place), Inline(), watch=job_watcher())))
        return
    if overwrite or not (output / "run.json").exists():
        refuse_occupied(output, overwrite=overwrite)
    command = f"unveil theory --severity {severity:g} --seed {seed} --draws {draws} -o {output.name}".split()
    with atomic_folder(output, overwrite=True) if overwrite else nullcontext(output) as folder:
        report = write(run(study, folder, Inline(), watch=job_watcher()), folder, command)
    print_report(report, output)
