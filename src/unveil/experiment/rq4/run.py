"""Answering RQ4: a cell for each estimator and replicate, kept as they come; none is made twice."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.data.interactions import Interactions
from unveil.data.readers import convert_first
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.estimators.base import estimator
from unveil.experiment.outcome import BASE
from unveil.experiment.rq4.bench import parts_of, refuse_too_few_items
from unveil.experiment.rq4.cell import RealCell, forget_trainings
from unveil.experiment.rq4.control import CONTROL
from unveil.experiment.rq4.published import recognised
from unveil.experiment.rq4.results import RealResults
from unveil.experiment.rq4.study import RealStudy
from unveil.files import alone_in
from unveil.runs.progress import Silent, Watcher
from unveil.runs.workers import Engine
from unveil.settings import plain
from unveil.studies.arms import Variant, check_changes, estimators_of
from unveil.studies.cells import Store, run_cells
from unveil.studies.results import BASELINES
from unveil.training.fit import check_available

#: Raised when the same settings no longer give the same cells.
FORMAT = 1


@dataclass(frozen=True)
class RealPlan:
    """A study, and the replicates and estimators of it that are asked for."""

    study: RealStudy
    replicates: int = 5
    estimators: tuple[str, ...] = ("naive", "ips", "itps")

    def __post_init__(self) -> None:
        if self.replicates < 1:
            raise UnveilError("out of range", where="replicates", found=self.replicates, expected="at least 1")
        if BASE not in self.estimators:
            raise UnveilError(
                "the naive estimator is what all others are compared with",
                found=", ".join(self.estimators),
                hint=f"Add it: --estimators {','.join((BASE, *self.estimators))}.",
            )
        check_changes(estimators_of(self.estimators), self.study.changes)
        for arm in self.estimators:
            if estimator(Variant.of(arm).estimator).needs == "truth":
                hint = "Leave it out: a real log has no truth."
                raise UnveilError(f"the estimator {arm!r} needs a world whose truth is known", hint=hint)
            self.study.recipe(arm, 0)

    @property
    def arms(self) -> list[str]:
        """Baselines, estimators, then the control."""
        return [*BASELINES, *dict.fromkeys(self.estimators), CONTROL]


@dataclass(frozen=True, eq=False)
class RealAnswer:
    """What came out, and what it was made from."""

    plan: RealPlan
    log: Interactions
    split: Split
    results: RealResults
    data: str | None  # the paper's name of this log, where it has its size
    seconds: float  # of this run
    made: int  # cells made by this run

    @property
    def worker_seconds(self) -> float:
        """Of all cells, whenever they were made."""
        return float(sum(cell.get("seconds", 0.0) for cell in self.results.cells.values()))


def answer(plan: RealPlan, folder: Path, engine: Engine, *, watch: Watcher | None = None) -> RealAnswer:
    """Do what is left to do in `folder`, and give everything. Files are written by `files.write`."""
    begun = time.monotonic()
    log, split = parts_of(plan.study.log)
    refuse_too_few_items(split, plan.study.negatives)
    with convert_first(plan.study.log.data):
        for arm in plan.estimators:
            check_available(plan.study.recipe(arm, 0), log)
    store = Store(folder, identity(plan.study, log))
    store.open()
    with alone_in(folder):
        jobs = _jobs(plan, folder, log)
        left = sum(store.result(job.key) is None for job in jobs)
        done = run_cells(jobs, store, engine, watch or Silent())
        forget_trainings(jobs)
    results = RealResults.of(_with_controls(jobs, done), plan.arms, plan.replicates)
    return RealAnswer(plan, log, split, results, recognised(log), time.monotonic() - begun, left)


def _jobs(plan: RealPlan, folder: Path, log: Interactions) -> list[RealCell]:
    """Whole replicates first; within one the longest first, so that none ends alone."""
    taken = log.interacted()
    size = (len(taken.users), len(taken.items), len(taken))
    every = [
        RealCell(plan.study, folder, log.fingerprint(), size, replicate, arm)
        for replicate in range(plan.replicates)
        for arm in plan.arms
        if arm != CONTROL
    ]
    return sorted(every, key=lambda job: (job.replicate, -job.cost))


def _with_controls(jobs: list[RealCell], done: dict[str, dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """The control of a naive cell as a cell of its own, with the training that both share."""
    cells = {(job.arm, job.replicate): {**done[job.key], "seconds": job.seconds(done[job.key])} for job in jobs}
    for (arm, replicate), cell in list(cells.items()):
        if arm == BASE:
            cells[CONTROL, replicate] = {**cell[CONTROL], "training": cell["training"], "weights": None}
    return cells


def identity(study: RealStudy, log: Interactions) -> dict[str, Any]:
    """What a folder is told by. Data are known by their content; more replicates and estimators are welcome later."""
    cells = plain(study)
    del cells["log"]
    return {"question": "rq4", "format": FORMAT, "cells": {**cells, "data": log.fingerprint()}}
