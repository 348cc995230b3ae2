"""The options of commands that train by a preset or a config, written once: `unveil train` and `unveil tune`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


@dataclass(frozen=True)
class TrainingOptions:
    """What to train and how, as given on the command line; None: not given."""

    estimator: Annotated[
        str | None,
        typer.Option("--estimator", "-e", help="naive, ips, itps, corrected …: docs/estimators; or your own."),
    ] = None
    model: Annotated[str | None, typer.Option(help="bert4rec (if not given), sasrec or gru4rec.")] = None
    preset: Annotated[str | None, typer.Option(help="quick (if not given), paper or converged.")] = None
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; it may extend a preset.")] = None
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change one setting, e.g. model.width=128.")
    ] = None
    world: Annotated[
        str | None, typer.Option(help="Folder of the world the log was drawn from, or 'builtin': the truth is known.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None

    def named(self) -> dict[str, Any]:
        """The options that are settings, under the settings' names."""
        return {
            "model.name": self.model,
            "estimator.name": self.estimator,
            "data.world": self.world,
            "training.seed": self.seed,
            "training.device": self.device,
        }
