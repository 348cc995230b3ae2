"""Processes that train together, as a launcher starts them: this one leads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from torch.multiprocessing.spawn import start_processes

from unveil.training.distributed import Place, WorkerLostError

Task = TypeVar("Task")


@contextmanager
def followers(size: int, work: Callable[[Task, Place], object], task: Task) -> Iterator[Place]:
    """`size` − 1 processes that call `work(task, place)`; gives the leader's own place."""
    with TemporaryDirectory() as folder:
        address = (Path(folder) / "store").as_uri()
        how: Any = {"join": False, "daemon": True, "start_method": "spawn"}
        context = start_processes(_work, (work, task, size, address), size - 1, **how)  # type: ignore[no-untyped-call]
        try:
            yield Place(0, size, address)
            context.join(timeout=10)
        finally:
            for process in context.processes:
                process.kill()
                process.join(10)


def _work(index: int, work: Callable[[Any, Place], object], task: Any, size: int, address: str) -> None:
    try:
        work(task, Place(index + 1, size, address, index + 1))
    except WorkerLostError:  # a consequence, not a cause
        return
