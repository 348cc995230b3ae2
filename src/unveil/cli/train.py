"""`unveil train LOG -o RUN`: a trained, judged and usable recommender from a log."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.options import Address, EngineName, EngineOption, LogOptions, TrainingOptions, takes_also, takes_log
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.runs.config import Experiment
    from unveil.runs.train import Run

    Start = Callable[..., Run]


@takes_log
@takes_also("asked", TrainingOptions)
def train(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run; new, or one to --resume.")],
    asked: TrainingOptions,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that train together, here or on the Ray cluster; or see torchrun.")
    ] = 1,
    engine: EngineOption = EngineName.processes,
    address: Address = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Show the run on a page, index.html.")] = True,
) -> None:
    """Train a recommender on a log and judge it on what was held out.

    Settings come from the preset or the config, then from options, then from --set: the last to name one decides.
    """
    from unveil.cli.results import print_run
    from unveil.runs.folder import is_finished

    experiment = experiment_of(asked.preset, asked.config, options, asked.named(), asked.assignments or [])
    start, was_finished = _starter(workers, engine, address), is_finished(output)
    finished = _trained(experiment, output, workers, start, resume=resume)
    if finished is not None:
        print_run(finished)
        if page and not was_finished:
            _write_page(output)


def _write_page(run: Path) -> None:
    from unveil.cli.terminal import write_where_possible
    from unveil.runs.report_page import write_run_page

    write_where_possible(lambda: write_run_page(run, ["unveil", *sys.argv[1:]]))


def _starter(workers: int, engine: EngineName, address: str | None) -> "Start":
    """Who starts the workers: this process, on its machine, or a Ray cluster."""
    if engine is EngineName.ray:
        from unveil.runs.parallel import run_on_ray

        return partial(run_on_ray, workers=workers, address=address)
    from unveil.runs.parallel import run_workers
    from unveil.runs.workers import engine as refuse_unknown

    refuse_unknown(engine, address=address)
    return partial(run_workers, workers=workers)


def _trained(experiment: "Experiment", output: Path, workers: int, start: "Start", *, resume: bool) -> "Run | None":
    """The run, by workers of this machine or in the place that torchrun gave; None to those who do not lead."""
    from unveil.processes import sigterm_interrupts
    from unveil.runs.parallel import run_rank
    from unveil.training.distributed import Place
    from unveil.training.process_group import WorkerLostError
    from unveil.training.progress import watcher

    place = Place.of_environment()
    leads = place is None or place.rank == 0
    try:
        with sigterm_interrupts():
            if place is None:
                return start(experiment, output, resume=resume, watch=watcher(), tell=typer.echo)
            _refuse_other_number(workers, place.size)
            resume = resume or (place.again and _has_begun(output))
            return run_rank(experiment, output, place, resume=resume, watch=watcher(), tell=typer.echo)
    except KeyboardInterrupt as stop:
        raise _ended(f"{stop} in {output}" if str(stop) else "stopped", output, 130, tell=leads) from None
    except WorkerLostError as lost:
        raise _ended(str(lost).rstrip("."), output, 2, tell=leads) from None


def _refuse_other_number(asked: int, started: int) -> None:
    if asked not in (1, started):
        hint = "Leave --workers out: torchrun has started the workers."
        raise UnveilError("torchrun started another number of workers", found=asked, expected=f"{started}", hint=hint)


def _has_begun(output: Path) -> bool:
    from unveil.runs.folder import CONFIG

    return (output / CONFIG).exists()


def _ended(told: str, output: Path, code: int, *, tell: bool) -> typer.Exit:
    """The end before the end, told by one process: why, and how to go on."""
    hint = "Go on with the same command and --resume." if _has_begun(output) else "Nothing was written."
    if tell:
        typer.echo(f"unveil: {told}. {hint}", err=True)
    return typer.Exit(code)


def experiment_of(
    preset: str | None, config: Path | None, options: LogOptions, named: dict[str, Any], assignments: list[str]
) -> "Experiment":
    """The settings that a command line names; also those of `unveil tune`."""
    from unveil.runs.config import Experiment
    from unveil.settings import parsed

    if preset is not None and config is not None:
        hint = f'Write extends = "{preset}" at the head of the config.'
        raise UnveilError("a preset and a config were both given", expected="one of them", hint=hint)
    changes: dict[str, Any] = {f"data.{name}": value for name, value in options.settings().items()}
    changes |= {name: value for name, value in named.items() if value is not None}
    changes |= dict(parsed(assignment) for assignment in assignments)
    return Experiment.of(config or preset or "quick", changes)
