"""The engine of a cluster: jobs are Ray tasks of one core each, on whatever machines have joined.

A task whose machine is lost is done again elsewhere, by Ray. Results do not depend on where or how often a job was
begun, since a job's result depends on nothing but the job.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unveil.experiment.grid.attempt import attempt
from unveil.experiment.grid.job import Advanced, Begun, Done, Event, Failed, Job
from unveil.experiment.grid.ray_library import joined, ray

#: How often a job is begun again after its machine or process was lost.
_RETRIES = 5
#: Seconds between two looks at how far the jobs have come.
_LOOK = 0.5


class Board:
    """Where tasks write how far they are. It holds what nobody has read yet."""

    def __init__(self) -> None:
        self.news: dict[str, float] = {}

    def write(self, key: str, share: float) -> None:
        """A task has come so far; 0 when it begins."""
        self.news[key] = share

    def read(self) -> dict[str, float]:
        """What was written since the last time."""
        news, self.news = self.news, {}
        return news


def work(job: Job, board: Any, place: str) -> Done | Failed:
    """One task, in the folder where the command was given, on machines that have it."""
    with suppress(OSError):
        os.chdir(place)
    board.write.remote(job.key, 0.0)
    return attempt(job, lambda share: board.write.remote(job.key, share))


@dataclass(frozen=True)
class OnRay:
    """A cluster by its address; without one, a cluster of this machine alone with `count` cores."""

    address: str | None = None
    count: int | None = None

    def workers(self) -> int:
        """As many as the cluster has cores now."""
        with joined(self.address, self.count):
            return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(self, jobs: Sequence[Job]) -> Iterator[Event]:
        """All jobs. Closing the iterator stops those that are at work."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        with joined(self.address, self.count):
            # The board lives with us, not on a machine that may be lost.
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            board = ray.remote(num_cpus=0, scheduling_strategy=here)(Board).remote()
            task = ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(work)
            left = {task.remote(job, board, os.getcwd()): job for job in jobs}
            try:
                yield from _followed(left, board)
            finally:
                for reference in left:
                    ray.cancel(reference, force=True)
                ray.kill(board)


def _followed(left: dict[Any, Job], board: Any) -> Iterator[Event]:
    """Events until no job is left; `left` loses those that are over."""
    waiting = {job.key for job in left.values()}
    while left:
        over, _ = ray.wait(list(left), timeout=_LOOK)
        at_work = {job.key for job in left.values()}
        for key, share in ray.get(board.read.remote()).items():
            if key in waiting:
                yield _begun(key, waiting)
            if share and key in at_work:
                yield Advanced(key, share)
        for reference in over:
            job = left.pop(reference)
            if job.key in waiting:
                yield _begun(job.key, waiting)
            yield _outcome(reference, job)


def _begun(key: str, waiting: set[str]) -> Begun:
    waiting.discard(key)
    return Begun(key)


def _outcome(reference: Any, job: Job) -> Event:
    try:
        event: Done | Failed = ray.get(reference)
        return event
    except ray.exceptions.RayError as error:
        return Failed(job.key, _why(error), str(error))


def _why(error: Any) -> str:
    """Ray's errors are long, and say what matters last."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return "there is not enough memory."
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = (str(error.cause or error).strip().splitlines() or [""])[-1].rstrip(".")
        return f"it could not be begun: {cause}. Is the same version of unveil installed on every machine?"
    return f"its process or machine was lost ({type(error).__name__})."
