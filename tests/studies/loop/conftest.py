"""A small finished loop, made once."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.run_folders import TINY, options, small_log
from unveil.runs.workers import Inline
from unveil.studies.loop import LoopConfig, Looped, LoopPlan, run_loop

ROUNDS, REPLICATES = 3, 2
SETTINGS = [word for word in options({**TINY, "training.epochs": 2}) if word != "--set"]


def plan_of(
    rounds: int = ROUNDS,
    replicates: int = REPLICATES,
    models: tuple[str, ...] = ("naive", "itps", "random"),
    retrain: str = "scratch",
    settings: tuple[str, ...] = (),
) -> LoopPlan:
    config = LoopConfig(rounds, k=5, retrain=retrain, replicates=replicates, seed=3)
    return LoopPlan.of(config, models, "quick", [*SETTINGS, *settings])


@dataclass(frozen=True)
class Place:
    looped: Looped
    folder: Path


@pytest.fixture(scope="session")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two models and a rule, two replicates, three rounds; not to be changed."""
    folder = tmp_path_factory.mktemp("loop") / "loop"
    return Place(run_loop(plan_of(), small_log(), folder, Inline(), keep_logs=True), folder)
