"""One run by several processes: their places in a team, and the workers of one machine."""

from pathlib import Path

from unveil.cores import threads
from unveil.experiment.announce import Tell
from unveil.experiment.config import Experiment
from unveil.experiment.run import Run, follow, run
from unveil.training.distributed.crew import cores, crew, refuse_too_many
from unveil.training.distributed.join import Crew, Place, joined
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
