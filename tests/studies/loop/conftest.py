"""A small finished loop, made once."""

from pathlib import Path
from typing import Any

import pytest

from tests.run_folders import TINY, options, write_log
from unveil.data.filters import LogSource
from unveil.runs.workers import Inline
from unveil.studies.engine import Answer, run
from unveil.studies.loop import LoopStudy

ROUNDS, REPLICATES = 3, 2
SETTINGS = tuple(word for word in options({**TINY, "training.epochs": 2}) if word != "--set")


def small_study(folder: Path, *settings: str, **fields: Any) -> LoopStudy:
    """Two models and a rule on the small log, which is written into the folder."""
    log = LogSource(str(write_log(folder / "log.csv")))
    usual = {"rounds": ROUNDS, "replicates": REPLICATES, "estimators": ("naive", "itps", "random"), "k": 5, "seed": 3}
    return LoopStudy(log=log, changes=(*SETTINGS, *settings), **{**usual, **fields})


def records(answer: Answer, model: str) -> list[list[dict[str, float | None]]]:
    """By replicate and round."""
    return [record["records"] for record in answer.where(estimator=model)]


@pytest.fixture(scope="session")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """Two replicates, three rounds; not to be changed."""
    folder = tmp_path_factory.mktemp("loop")
    return run(small_study(folder, keep_logs=True), folder / "loop", Inline())
