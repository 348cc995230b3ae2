"""A real Ray cluster of two machines of one core each, both of them here."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.together import cluster

ROOT = Path(__file__).parents[1]


@contextmanager
def two_machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The one we sit at, and another. They import the tests' own jobs."""
    from unveil.runs.on_ray import ray

    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT}/src")
    with cluster() as found:
        try:
            yield found
        finally:
            ray.shutdown()


def lose_one(cluster: Any) -> None:
    """The other machine is gone at once, with all that ran there."""
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
