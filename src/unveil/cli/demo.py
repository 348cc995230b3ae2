"""`unveil demo|theory`: the method on a built-in world, and the paper's propositions checked."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from unveil.cli.options import Jobs, Overwrite, Seed, option
from unveil.cli.terminal import run_study


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
    from unveil.runs.workers import engine
    from unveil.studies.demo import Demo

    spec = replace(Demo().spec, users=users)
    study = Demo(spec=spec, epochs=epochs, replicates=replicates, seed=seed)
    run_study(study, output, engine("processes", jobs), overwrite=overwrite)


def theory(
    severity: Annotated[float, option("Exponent p of exposure: θ = ô^p, above 0, at most 10.")] = 1.0,
    seed: Annotated[int, option("Seed of the worlds, the scores and the draws.", min=0, max=2**62)] = 0,
    draws: Annotated[int, option("Logs drawn for each choice model.", min=2)] = 100,
    output: Annotated[Path | None, option("Folder to write: page and results.", "--output", "-o")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Check the paper's propositions: exactly on tiny worlds, by drawn logs on a larger one, in about half a minute."""
    from unveil.runs.progress import job_watcher
    from unveil.runs.workers import Inline
    from unveil.studies.engine import Report, print_report, run
    from unveil.studies.theory import Theory

    study = Theory(severity=severity, seed=seed, draws=draws)
    if output is not None:
        run_study(study, output, Inline(), overwrite=overwrite)
        return
    with TemporaryDirectory() as place:
        print_report(Report(run(study, Path(place), Inline(), watch=job_watcher())))
