"""A real Ray cluster of two machines of one core each, both of them here."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@contextmanager
def two_machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The one we sit at, and another. They import the tests' own jobs."""
    from ray.cluster_utils import Cluster

    from unveil.experiment.grid.ray_library import ray

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        found.add_node(num_cpus=1)
        found.wait_for_nodes()
        yield found
    finally:
        ray.shutdown()
        found.shutdown()


def lose_one(cluster: Any) -> None:
    """The other machine is gone at once, with all that ran there."""
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
