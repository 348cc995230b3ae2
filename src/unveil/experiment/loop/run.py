"""From a log to the figures of every model's loop. Every round is kept, and none is made twice."""

import time
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.writers import write as write_log
from unveil.errors import UnveilError
from unveil.experiment.loop.job import LoopJob, loop_of, taken_so_far, write_base
from unveil.experiment.loop.logs import grown_log
from unveil.experiment.loop.outcome import LoopOutcome
from unveil.experiment.loop.plan import LoopPlan
from unveil.experiment.rq4.published import recognised
from unveil.files import alone_in, refuse_occupied
from unveil.runs.progress import Silent, Watcher
from unveil.runs.workers import Engine
from unveil.simulation.world import World
from unveil.studies.cells import ABOUT, Store, run_cells

#: Raised when the same settings no longer give the same rounds.
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Looped:
    """What came out, and of what."""

    plan: LoopPlan
    log: Interactions
    world: World | None
    outcome: LoopOutcome
    seconds: float  # of this run
    worker_seconds: float  # of the run that ended each job; what was stopped before is not in it


def run_loop(
    plan: LoopPlan,
    log: Interactions,
    folder: Path,
    engine: Engine,
    *,
    world: World | None = None,
    resume: bool = False,
    keep_logs: bool = False,
    watch: Watcher | None = None,
) -> Looped:
    """Loop every model in every replicate. Whatever a user got wrong is found before the folder is touched."""
    begun = time.monotonic()
    _refuse_unfit(folder, resume=resume)
    base, truth = Sequences.of(log), None if world is None else world.aligned_with(log)
    loop_of(plan.loop, base, truth)
    store = Store(folder, identity(plan, log, truth))
    store.open()
    jobs = [
        LoopJob(folder, plan.loop, model, recipe, replicate)
        for replicate in range(plan.loop.replicates)
        for model, recipe in plan.models.items()
    ]
    with alone_in(folder):
        write_base(folder, base, truth)
        done = run_cells(sorted(jobs, key=lambda job: -job.cost), store, engine, watch or Silent())  # long ones first
    records = {model: [done[job.key]["records"] for job in jobs if job.model == model] for model in plan.models}
    if keep_logs:
        _write_logs(plan, log, folder)
    worked = sum(float(result["seconds"]) for result in done.values())
    known, outcome = replace(plan, data=recognised(log)), LoopOutcome(records, plan.loop.rounds)
    return Looped(known, log, truth, outcome, time.monotonic() - begun, worked)


def identity(plan: LoopPlan, log: Interactions, world: World | None) -> dict[str, Any]:
    """What a folder is told by: more rounds and replicates may be asked of it later, and nothing else."""
    cells = {**plan.identity(), "log": log.fingerprint(), "world": None if world is None else _told_by(world)}
    return {"question": "loop", "format": FORMAT, "cells": cells}


def _told_by(world: World) -> str:
    """A hash of the true relevance: all that the loop takes from a world."""
    tables = (world.relevance_logits.P_UK, world.relevance_logits.Q_VK, world.relevance_logits.W_TK)
    return sha256(b"".join(table.tobytes() for table in tables)).hexdigest()


def _refuse_unfit(folder: Path, *, resume: bool) -> None:
    if not resume:
        refuse_occupied(folder, hint="Name another; or, if it holds a loop that was stopped, pass --resume.")
    elif not (folder / ABOUT).exists():
        raise UnveilError("there is no loop to resume", where=folder, hint="Leave --resume out to start one.")


def _write_logs(plan: LoopPlan, log: Interactions, folder: Path) -> None:
    for model in plan.models:
        for replicate in range(plan.loop.replicates):
            taken_RU = taken_so_far(folder, model, replicate, plan.loop.rounds)
            write_log(grown_log(log, taken_RU), folder / "logs" / f"{model}-r{replicate}.parquet")
