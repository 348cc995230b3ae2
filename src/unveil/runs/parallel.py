"""One run by several processes: ranks of torchrun, or workers that this process starts on its machine."""

from pathlib import Path

import torch

from unveil.errors import UnveilError
from unveil.processes import threads
from unveil.runs.announce import Tell
from unveil.runs.config import Experiment
from unveil.runs.train import Run, follow, run
from unveil.runs.workers import cores
from unveil.training.device import pick_device
from unveil.training.distributed import Place, Workers, joined, local_workers
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
    workers: Workers | None = None,
) -> Run | None:
    """The part of one process in a run, whoever started it; all are given the same settings.

    The leader, rank 0, writes the folder, reports and watches, and gives the run; the others give None.
    """
    with joined(place, experiment.training.device, workers) as group:
        if group.is_leader:
            return run(experiment, folder, resume=resume, watch=watch, tell=tell, group=group)
        follow(experiment, group)
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
    check_workers(workers, experiment.training.device)
    if workers == 1:
        return run(experiment, folder, resume=resume, watch=watch, tell=tell)
    each = experiment.training.threads or max(1, cores() // workers)
    tell(f"workers    {workers}, {quantity(each, 'thread')} each")
    with local_workers(workers, _work, (experiment, each)) as (place, started), threads(each):
        finished = run_rank(experiment, folder, place, resume=resume, watch=watch, tell=tell, workers=started)
    assert finished is not None  # this process leads
    return finished


def _work(task: tuple[Experiment, int], place: Place) -> None:
    """What a started worker does. Only leaders write: it needs no folder."""
    experiment, each = task
    with threads(each):
        run_rank(experiment, Path(), place)


def check_workers(workers: int, device: str = "auto") -> None:
    """Workers that share a core or a GPU only wait for one another."""
    if workers < 1:
        raise UnveilError("out of range", where="workers", found=workers, expected="at least 1")
    gpus = pick_device(device).type == "cuda"
    most, what = (torch.cuda.device_count(), "GPUs") if gpus else (cores(), "cores")
    if workers > most:
        hint = "Workers on other machines are started by torchrun."
        raise UnveilError(f"more workers than {what}", found=workers, expected=f"at most {most}", hint=hint)
