"""`unveil theory`: which losses are unbiased, under which assumptions, and what they learn."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer


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
