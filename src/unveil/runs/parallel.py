"""One run by several processes: their places in a team, and the workers of one machine."""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.processes import threads
from unveil.runs.announce import Tell
from unveil.runs.config import Experiment
from unveil.runs.on_ray import joined as ray_cluster
from unveil.runs.on_ray import ray
from unveil.runs.train import Run, follow, run
from unveil.training.distributed import Crew, Place, cores, crew, joined, refuse_too_many
from unveil.training.progress import Watcher
from unveil.wording import quantity


def run_rank(
    experiment: Experiment,
    folder: Path,
    place: Place,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
    crew: Crew | None = None,
) -> Run | None:
    """The part of one process in a run, whoever started it; all are given the same settings.

    The leader, rank 0, writes the folder, tells and watches, and gives the run; the others give None.
    """
    with joined(place, experiment.training.device, crew) as team:
        if team.leads:
            return run(experiment, folder, resume=resume, watch=watch, tell=tell, team=team)
        follow(experiment, team)
    return None


def run_workers(
    experiment: Experiment,
    folder: Path,
    workers: int,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
) -> Run:
    """A run by `workers` processes of this machine, this one among them; the cores are shared out."""
    refuse_too_many(workers, experiment.training.device)
    if workers == 1:
        return run(experiment, folder, resume=resume, watch=watch, tell=tell)
    each = experiment.training.threads or max(1, cores() // workers)
    tell(f"workers    {workers}, {quantity(each, 'thread')} each")
    with crew(workers, _work, (experiment, each)) as (place, started), threads(each):
        finished = run_rank(experiment, folder, place, resume=resume, watch=watch, tell=tell, crew=started)
    assert finished is not None  # this process leads
    return finished


def _work(order: tuple[Experiment, int], place: Place) -> None:
    """The life of a worker that was started here. Only leaders write: it needs no folder."""
    experiment, each = order
    with threads(each):
        run_rank(experiment, Path(), place)


@dataclass(frozen=True, eq=False)
class RayCrew:
    """The tasks that follow, ranks 1, 2, …"""

    tasks: list[Any]

    def dead(self) -> str | None:
        """The first worker that ended, with why; none ends before the leader does."""
        over, _ = ray.wait(self.tasks, num_returns=len(self.tasks), timeout=0)
        for rank, task in enumerate(self.tasks, start=1):
            if task in over:
                return f"worker {rank + 1} of {len(self.tasks) + 1} was lost ({_why(task)})"
        return None

    def dismiss(self) -> None:
        """Kill them: they hold nothing that could be lost."""
        for task in self.tasks:
            with suppress(ray.exceptions.RayError):
                ray.cancel(task, force=True)


def run_on_ray(
    experiment: Experiment,
    folder: Path,
    workers: int,
    address: str | None = None,
    *,
    resume: bool = False,
    watch: Watcher | None = None,
    tell: Tell = print,
) -> Run:
    """A run by `workers` processes: this one, and tasks on whatever machines the cluster has."""
    each = experiment.training.threads or 1
    with ray_cluster(address, workers * each), threads(each):
        meeting = f"tcp://{ray.util.get_node_ip_address()}:{_free_port()}"
        tell(f"workers    {workers}, {quantity(each, 'thread')} each, on {quantity(len(_machines()), 'machine')}")
        follower = ray.remote(num_cpus=each, max_retries=0, scheduling_strategy="SPREAD")(_follow)
        places = [Place(rank, workers, meeting) for rank in range(workers)]
        crew = RayCrew([follower.remote(experiment, each, place, os.getcwd()) for place in places[1:]])
        try:
            finished = run_rank(experiment, folder, places[0], resume=resume, watch=watch, tell=tell, crew=crew)
        finally:
            crew.dismiss()
    assert finished is not None  # this process leads
    return finished


def _follow(experiment: Experiment, each: int, place: Place, folder: str) -> None:
    """The life of a worker. Only the leader writes: it needs no folder but to find the log."""
    with suppress(OSError):
        os.chdir(folder)
    with threads(each):
        run_rank(experiment, Path(), place)


def _machines() -> list[Any]:
    return [node for node in ray.nodes() if node["Alive"]]


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("", 0))
        return int(taken.getsockname()[1])


def _why(task: Any) -> str:
    try:
        ray.get(task)
    except ray.exceptions.RayTaskError as error:
        return str(error.cause or error).strip().splitlines()[-1].rstrip(".")
    except ray.exceptions.RayError as error:
        return type(error).__name__
    return "it ended"
