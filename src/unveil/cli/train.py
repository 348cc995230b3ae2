"""`unveil train LOG -o RUN`: a trained, judged and usable recommender from a log."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.log_options import LogOptions, takes_log
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.experiment.config import Experiment


@takes_log
def train(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run; new, or one to --resume.")],
    estimator: Annotated[
        str | None, typer.Option("--estimator", "-e", help="naive, ips, itps, ideal or one of your own.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="bert4rec (if not given), sasrec or gru4rec.")] = None,
    preset: Annotated[str | None, typer.Option(help="quick (if not given), paper or converged.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; it may extend a preset.")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change one setting, e.g. model.width=128.")
    ] = None,
    world: Annotated[
        str | None, typer.Option(help="Folder of the world the log was drawn from, or 'builtin': the truth is known.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
) -> None:
    """Train a recommender on a log and judge it on what was held out.

    Settings come from the preset or the config, then from options, then from --set: the last to name one decides.
    """
    from unveil.cli.results import print_run
    from unveil.experiment.folder import CONFIG
    from unveil.experiment.grid.stopping import asked_to_stop
    from unveil.experiment.run import run
    from unveil.training.progress import watcher

    named = {
        "model.name": model,
        "estimator.name": estimator,
        "data.world": world,
        "training.seed": seed,
        "training.device": device,
    }
    experiment = experiment_of(preset, config, options, named, assignments or [])
    try:
        with asked_to_stop():
            finished = run(experiment, output, resume=resume, watch=watcher(), tell=typer.echo)
    except KeyboardInterrupt as stop:
        told = f"{stop} in {output}" if str(stop) else "stopped"
        hint = "Go on with the same command and --resume." if (output / CONFIG).exists() else "Nothing was written."
        typer.echo(f"unveil: {told}. {hint}", err=True)
        raise typer.Exit(130) from None
    print_run(finished)


def experiment_of(
    preset: str | None, config: Path | None, options: LogOptions, named: dict[str, Any], assignments: list[str]
) -> "Experiment":
    """The settings that a command line names; also those of `unveil tune`."""
    from unveil.experiment.config import Experiment
    from unveil.settings import parsed

    if preset is not None and config is not None:
        hint = f'Write extends = "{preset}" at the head of the config.'
        raise UnveilError("a preset and a config were both given", expected="one of them", hint=hint)
    changes: dict[str, Any] = {f"data.{name}": value for name, value in options.settings().items()}
    changes |= {name: value for name, value in named.items() if value is not None}
    changes |= dict(parsed(assignment) for assignment in assignments)
    return Experiment.of(config or preset or "quick", changes)
