"""`unveil train LOG -o RUN`: a trained, judged and usable recommender from a log."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unveil.cli.log_options import LogOptions, takes_log

if TYPE_CHECKING:
    pass


@takes_log
def train(
    *,
    options: LogOptions,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the run; new, or one to --resume.")],
    estimator: Annotated[
        str | None, typer.Option("--estimator", "-e", help="naive, ips, itps, ideal or one of your own.")
    ] = None,
    preset: Annotated[str, typer.Option(help="quick, paper or converged.")] = "quick",
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; it may extend a preset.")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change one setting, e.g. model.width=128.")
    ] = None,
    world: Annotated[
        Path | None, typer.Option(help="Folder of the world the log was drawn from: gives true propensities.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
) -> None:
    """Train a recommender on a log and judge it on what was held out."""
    from unveil.cli.results import print_run
    from unveil.experiment.config import Experiment
    from unveil.experiment.run import run
    from unveil.settings import parsed
    from unveil.training.progress import watcher
    from unveil.training.trainer import Stopped

    changes: dict[str, Any] = {f"data.{name}": value for name, value in options.settings().items()}
    named = {"estimator.name": estimator, "training.seed": seed, "training.device": device}
    changes |= {name: value for name, value in named.items() if value is not None}
    if world is not None:
        changes["data.world"] = str(world)
    changes |= dict(parsed(assignment) for assignment in assignments or [])
    experiment: Experiment = Experiment.of(config or preset, changes)
    try:
        finished = run(experiment, output, resume=resume, watch=watcher(), tell=typer.echo)
    except Stopped as stopped:
        typer.echo(f"{stopped}; go on with the same command and --resume", err=True)
        raise typer.Exit(130) from None
    print_run(finished)
