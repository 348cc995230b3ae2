from pathlib import Path

import pytest

from tests.run_folders import Finished, experiment_on
from tests.run_folders import finished as finished
from unveil.runs.train import run


@pytest.fixture(scope="session")
def pair(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A naive and an ITPS run on the same log and cases; not to be changed."""
    place = tmp_path_factory.mktemp("naive")
    run(experiment_on(finished.log), place / "naive", tell=lambda _: None)
    return [place / "naive", finished.folder]
