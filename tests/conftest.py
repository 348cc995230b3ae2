"""Where the real data are, for those who have them. Every test on real data has a twin on generated data."""

import os
from pathlib import Path

# As many tests run at once as there are cores; more threads than that wait for one another. Read when torch is loaded,
# here and in the commands that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

REAL_DATA = Path(os.environ.get("UNVEIL_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


# How long an example takes says more of who else uses the machine than of the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, named by UNVEIL_TEST_DATA; the test is skipped where there is none."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"no real data at {REAL_DATA}: set UNVEIL_TEST_DATA to a folder with ml-100k, ml-1m, beauty, …")
    return REAL_DATA
