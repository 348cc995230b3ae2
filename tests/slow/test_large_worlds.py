"""A world of the size of ml-1m: fitted with few sweeps, described and drawn within bounds of memory."""

import json
import subprocess
import sys

import pytest

MOST_MIB = 4 * 1024

REPORT = """
import json
import numpy as np
from benchmarks.memory import peak_mib
from unveil import Interactions, World
from unveil.data.indexing import Vocabulary
from unveil.simulation.fit import Fit, fit_world

users, items, steps, rng = 6040, 3416, 200, np.random.default_rng(0)
item = np.concatenate([rng.choice(items, steps, replace=False) for _ in range(users)]).astype(np.int32)
log = Interactions(
    user=np.repeat(np.arange(users, dtype=np.int32), steps),
    item=item,
    users=Vocabulary(f"u{n:04d}" for n in range(users)),
    items=Vocabulary(f"i{n:04d}" for n in range(items)),
    rating=rng.integers(1, 6, len(item)).astype(np.float32),
)
short = {"sweeps": 2, "burn_in": 1}
world = fit_world(log, Fit(steps=steps, relevance=short, exposure=short))
figures = world.describe()
drawn = world.log(np.random.default_rng(0))
print(json.dumps({"slots": figures.slots, "events": len(drawn), "peak_mib": peak_mib()}))
"""


@pytest.mark.slow
def test_a_world_of_the_size_of_ml_1m_fits() -> None:
    done = subprocess.run([sys.executable, "-c", REPORT], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["slots"] == 6040 * 200
    assert 0.8 * found["slots"] < found["events"] <= found["slots"]
    assert found["peak_mib"] < MOST_MIB
