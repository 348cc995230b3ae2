"""Studies that take a moment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.run_folders import TINY, experiment_on, options
from unveil.runs.config import Experiment
from unveil.runs.tune.search import Location, tune
from unveil.runs.tune.study import Plan, Space, Study
from unveil.runs.tune.subjects import Training

QUICKEST: Mapping[str, Any] = {**TINY, "training.epochs": 2}
CONTENT = '"model.heads" = [1, 2]\n"model.dropout" = [0.0, 0.2]\n"training.lr" = [0.001, 0.01]\n'
TIMING: Mapping[str, Any] = {"beat": 1.0, "grace": 60.0, "look": 0.1}


def write_space(folder: Path, content: str = CONTENT) -> Path:
    path = folder / "space.toml"
    path.write_text(content)
    return path


def space(folder: Path, content: str = CONTENT) -> Space:
    return Space.read(str(write_space(folder, content)))


def quickest(log: Path, changes: Mapping[str, Any] | None = None) -> Experiment:
    return experiment_on(log, {**QUICKEST, **(changes or {})})


def study(experiment: Experiment, plan: Plan, folder: Path, storage: str | None = None) -> Study:
    return tune(Training(experiment), plan, Location(folder, storage, **TIMING), tell=lambda _: None)


def command(log: Path, space: Path, *more: object, settings: Mapping[str, Any] = QUICKEST) -> list[str]:
    """The same on the command line."""
    return ["tune", str(log), "--space", str(space), *map(str, more), *options(settings)]
