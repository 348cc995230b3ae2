"""`unveil train LOG -o RUN`: from a log to an evaluated recommender."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import LogOptions, TrainingOptions, option, takes_options
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.runs.config import Experiment
    from unveil.runs.train import Run


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
    from unveil.cli.results import print_run
    from unveil.cli.terminal import write_where_possible
    from unveil.runs.finished import FinishedRun
    from unveil.runs.folder import is_finished
    from unveil.runs.report_page import write_run_page

    if engine != "processes" or address is not None:
        hint = "On several machines: torchrun --nnodes N --nproc-per-node M ... -m unveil train LOG -o RUN."
        raise UnveilError("training does not run on Ray any more", expected="--workers, or torchrun", hint=hint)
    experiment, was_finished = _with_network(training, output, resume=resume).experiment(options), is_finished(output)
    finished = _trained(experiment, output, workers, resume=resume)
    if finished is not None:
        print_run(finished)
        if page and not was_finished:
            write_where_possible(lambda: write_run_page(FinishedRun.of(finished), ["unveil", *sys.argv[1:]]))


def _with_network(training: TrainingOptions, output: Path, *, resume: bool) -> TrainingOptions:
    """SASRec, unless the options, the preset of the paper or a config name a network; or what a resumed run has."""
    from unveil.runs.folder import CONFIG, read_config
    from unveil.settings import parsed, plain

    named = training.model or training.config or training.preset == "paper"
    if named or any(parsed(each)[0] == "model.name" for each in training.assignments or ()):
        return training
    begun = resume and (output / CONFIG).exists()
    return replace(training, model=plain(read_config(output).model)["name"] if begun else "sasrec")


def _trained(experiment: "Experiment", output: Path, workers: int, *, resume: bool) -> "Run | None":
    """The run, trained by workers of this machine or as a rank of torchrun; None to all ranks but the first."""
    from unveil.processes import sigterm_interrupts
    from unveil.runs.folder import CONFIG
    from unveil.runs.parallel import run_rank, run_workers
    from unveil.training.distributed import Place
    from unveil.training.process_group import WorkerLostError
    from unveil.training.progress import watcher

    place = Place.of_environment()
    try:
        with sigterm_interrupts():
            if place is None:
                return run_workers(experiment, output, workers, resume=resume, watch=watcher(), tell=typer.echo)
            if workers not in (1, place.size):
                hint = "Leave --workers out: torchrun has started the workers."
                problem = "torchrun started another number of workers"
                raise UnveilError(problem, found=workers, expected=f"{place.size}", hint=hint)
            resume = resume or (place.attempt > 0 and (output / CONFIG).exists())
            return run_rank(experiment, output, place, resume=resume, watch=watcher(), tell=typer.echo)
    except (KeyboardInterrupt, WorkerLostError) as stop:
        if place is None or place.rank == 0:
            why = str(stop).rstrip(".") + (f" in {output}" if isinstance(stop, KeyboardInterrupt) else "")
            begun = (output / CONFIG).exists()
            hint = "Go on with the same command and --resume." if begun else "Nothing was written."
            typer.echo(f"unveil: {why if str(stop) else 'stopped'}. {hint}", err=True)
        raise typer.Exit(130 if isinstance(stop, KeyboardInterrupt) else 2) from None
