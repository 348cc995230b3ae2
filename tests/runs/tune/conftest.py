from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.run_folders import write_log
from tests.runs.tune.studies import quickest, space, study
from unveil.runs.config import Experiment
from unveil.runs.tune.study import Plan, Study
from unveil.runs.tune.subjects import Training


@dataclass(frozen=True)
class Tuned:
    """A finished study of one process; not to be changed."""

    study: Study
    folder: Path
    log: Path

    @property
    def experiment(self) -> Experiment:
        """What was tuned."""
        assert isinstance(self.study.subject, Training)
        return self.study.subject.experiment

    @property
    def values(self) -> list[list[float]]:
        """Of each trial's replicates."""
        return [[each.value for each in record.replicates] for record in self.study.trials]


@pytest.fixture(scope="session")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    place = tmp_path_factory.mktemp("tuned")
    log = write_log(place / "log.csv")
    plan = Plan(space(place), trials=4, replicates=2)
    return Tuned(study(quickest(log), plan, place / "study"), place / "study", log)
