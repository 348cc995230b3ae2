"""`unveil train LOG -o RUN`: from a log to an evaluated recommender."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from unveil.cli.options import LogOptions, TrainingOptions, option, takes_options
from unveil.errors import UnveilError
from unveil.wording import quantity


@takes_options
def train(
    *,
    options: LogOptions,
    output: Annotated[Path, option("Folder of the run; new, or one to --resume.", "--output", "-o")],
    training: TrainingOptions,
    workers: Annotated[int, option("Processes of this machine that train together; see also torchrun.", min=1)] = 1,
    engine: Annotated[str, option("No longer used: several machines train by torchrun.", hidden=True)] = "processes",
    address: Annotated[str | None, option("No longer used.", hidden=True)] = None,
    resume: Annotated[bool, option("Continue a run that was stopped.", "--resume")] = False,
    page: Annotated[bool, option("Write the run's page, index.html.", "--page/--no-page")] = True,
) -> None:
    """Train a recommender on a log and evaluate it on the held-out interactions.

    Settings come from the preset or the config, then from options, then from --set: the last one decides.
    """
    from unveil.cli.results import print_evaluation
    from unveil.cli.terminal import write_where_possible
    from unveil.processes import sigterm_interrupts
    from unveil.runs.report_page import write_run_page
    from unveil.runs.run_folder import CONFIG
    from unveil.runs.train import run, run_rank, run_workers
    from unveil.studies.paper import published_line
    from unveil.training.distributed import Place, WorkerLostError
    from unveil.training.progress import watcher

    if engine != "processes" or address is not None:
        hint = "On several machines: torchrun --nnodes N --nproc-per-node M ... -m unveil train LOG -o RUN."
        raise UnveilError("training does not run on Ray any more", expected="--workers, or torchrun", hint=hint)
    place = Place.of_environment()
    if place is not None:
        if workers not in (1, place.size):
            hint, problem = "Leave --workers out.", "torchrun started another number of workers"
            raise UnveilError(problem, found=workers, expected=f"{place.size}", hint=hint)
        resume = resume or (place.attempt > 0 and (output / CONFIG).exists())
    experiment = training.experiment(options, output if resume and (output / CONFIG).exists() else None)
    try:
        with sigterm_interrupts():
            if place is not None:
                done = run_rank(experiment, output, place, resume=resume, watch=watcher(), tell=typer.echo)
            elif workers > 1:
                done = run_workers(experiment, output, workers, resume=resume, watch=watcher(), tell=typer.echo)
            else:
                done = run(experiment, output, resume=resume, watch=watcher(), tell=typer.echo)
    except (KeyboardInterrupt, WorkerLostError) as stop:
        interrupted = isinstance(stop, KeyboardInterrupt)
        if place is None or place.rank == 0:
            why = str(stop).rstrip(".") + f" in {output}" * interrupted if str(stop) else "stopped"
            begun = (output / CONFIG).exists()
            hint = "Go on with the same command and --resume." if begun else "Nothing was written."
            typer.echo(f"unveil: {why}. {hint}", err=True)
        raise typer.Exit(130 if interrupted else 2) from None
    if done is None:
        return
    fitted, best = done.fitted, ""
    if fitted.best is not None:
        best = f", best at {fitted.best.epoch} (validation {done.experiment.training.monitor} {fitted.best.value:.4f})"
    typer.echo(f"{quantity(len(fitted.epochs), 'epoch')}{' (stopped early)' * fitted.stopped_early}{best}")
    print_evaluation(done.evaluation)
    if (line := published_line(done)) is not None:
        typer.echo(line)
    typer.echo(f"the run is in {output}; next: unveil recommend {output}")
    if page and done.trained:
        write_where_possible(lambda: write_run_page(done, ["unveil", *sys.argv[1:]]))
