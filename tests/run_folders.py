"""A small log with awkward ids, and runs on it that take a moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from unveil.data.interactions import Interactions
from unveil.runs.config import Experiment
from unveil.runs.run_folder import Run
from unveil.runs.train import run

USERS, ITEMS = 40, 30

TINY: Mapping[str, Any] = {
    "model.width": 8,
    "model.length": 8,
    "task.batch_size": 16,
    "training.epochs": 3,
    "training.validate_every": 1,
    "training.threads": 1,
    "training.device": "cpu",
}


def small_frame(seed: int = 0) -> pl.DataFrame:
    """Histories of 4 to 11 different items, popular ones more often; ids that numbers would spoil."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / np.arange(2, ITEMS + 2)
    rows = [
        (f"{user:04d}", f"0{item:02d}", 1_600_000_000 + 100 * place + user)
        for user in range(USERS)
        for place, item in enumerate(rng.choice(ITEMS, 4 + user % 8, replace=False, p=weight / weight.sum()))
    ]
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")


def write_log(path: Path, seed: int = 0) -> Path:
    """The small log as a CSV file."""
    small_frame(seed).write_csv(path)
    return path


def small_log() -> Interactions:
    """The small log as it is read."""
    frame = small_frame().rename({"user_id": "user", "item_id": "item", "timestamp": "time"})
    return Interactions.from_frame(frame.with_columns(pl.col("time") * 1_000_000))


def options(settings: Mapping[str, Any] = TINY) -> list[str]:
    """Settings as they are given on the command line."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


def experiment_on(log: Path, changes: Mapping[str, Any] | None = None) -> Experiment:
    """A tiny run on a log."""
    return Experiment.of("quick", {**TINY, "data.log": str(log), **(changes or {})})


@dataclass(frozen=True)
class Finished:
    """A run, what it said, and the log it was made from."""

    run: Run
    told: list[str]
    log: Path

    @property
    def folder(self) -> Path:
        return self.run.folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A finished ITPS run; not to be changed."""
    place = tmp_path_factory.mktemp("finished")
    log, told = write_log(place / "log.csv"), list[str]()
    return Finished(run(experiment_on(log, {"estimator.name": "itps"}), place / "run", tell=told.append), told, log)


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones included."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
