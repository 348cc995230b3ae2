"""Answering a question: worlds, then cells, then tables and pages. Every part is kept, and none is made twice."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from unveil.experiment.reproduce.plan import Plan
from unveil.experiment.reproduce.question import Question
from unveil.experiment.reproduce.results import Results
from unveil.experiment.reproduce.study import Study
from unveil.experiment.reproduce.worlds import Source, WorldJob, adopt, place, refuse_more_than_one
from unveil.files import alone_in
from unveil.runs.progress import Silent, Watcher
from unveil.runs.workers import Engine, Job
from unveil.settings import plain
from unveil.studies.cells import Store, run_cells

#: Where a cell stands in its grid.
At = TypeVar("At")

#: Raised when the same settings no longer give the same cells.
FORMAT = 1

#: What folders do not say of a study that has it so: those from before there were such settings stay what they are.
UNSAID = {name: getattr(Study, name) for name in ("foresight", "epoch_by", "stars", "impressions")}


@dataclass(frozen=True, eq=False)
class Answer:
    """What came out, and what it was made from."""

    question: Question
    plan: Plan
    source: Source
    results: Results
    worlds: list[dict[str, Any]]  # what each world is
    seconds: float  # of this run
    made: int  # cells made by this run

    @property
    def worker_seconds(self) -> float:
        """Of all cells and worlds, whenever they were made."""
        every = [*self.results.cells.values(), *self.worlds]
        return float(sum(cell["seconds"] for cell in every))


def answer(
    question: Question,
    plan: Plan,
    folder: Path,
    engine: Engine,
    *,
    watch: Watcher | None = None,
    take_from: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Do what is left to do in `folder`, and give everything. Files are written by `files.write`."""
    begun = time.monotonic()
    refuse_more_than_one(plan.study, plan.worlds)
    source = Source.of(plan.study)
    store = Store(folder, identity(question, plan, source), UNSAID)
    if take_from is not None:
        store.compatible(take_from)  # refused before the folder is begun
    store.open()
    tell(plan.in_words())
    with alone_in(folder):
        if take_from is not None:
            store.copy_from(take_from, by_the_same_names(plan.world_jobs(folder), plan.cell_jobs(folder).values()))
            adopt(take_from, folder, plan.worlds)
        worlds, results, made = _done(plan, store, engine, watch or Silent())
    return Answer(question, plan, source, results, worlds, time.monotonic() - begun, made)


def by_the_same_names(worlds: Iterable[WorldJob], cells: Iterable[Job]) -> dict[str, str]:
    """Worlds and cells that another folder of the question has are called there as here."""
    jobs: list[Job] = [*worlds, *cells]
    return {job.key: job.key for job in jobs}


def _done(plan: Plan, store: Store, engine: Engine, watch: Watcher) -> tuple[list[dict[str, Any]], Results, int]:
    """What the worlds are, the results of all cells, and how many of these were made now."""
    worlds, cells = plan.world_jobs(store.folder), plan.cell_jobs(store.folder)
    described, found, made = worlds_and_cells(worlds, cells, store, engine, watch)
    return described, Results(found, plan.severities, plan.worlds, plan.replicates, plan.arms), made


def worlds_and_cells(
    worlds: Sequence[WorldJob], cells: Mapping[At, Job], store: Store, engine: Engine, watch: Watcher
) -> tuple[list[dict[str, Any]], dict[At, dict[str, Any]], int]:
    """What the worlds are, the results of all cells by their places, and how many of these were made now.

    Places may share a cell: it is made once.
    """
    each = {job.key: job for job in cells.values()}
    left = [key for key in each if store.result(key) is None]
    for job in worlds:
        if left and not (place(store.folder, job.number) / "world.json").is_file():
            store.remove(job.key)  # its description was taken over, or its folder removed
    described = run_cells(worlds, store, engine, watch, what="worlds")
    done = run_cells(list(each.values()), store, engine, watch)
    return list(described.values()), {at: done[job.key] for at, job in cells.items()}, len(left)


def identity(question: Question, plan: Plan, source: Source) -> dict[str, Any]:
    """What a folder is told by. Data are known by their content; more replicates or severities are welcome later."""
    return {"question": question.name, "format": FORMAT, "cells": cells_depend_on(plan.study, source)}


def cells_depend_on(study: Study, source: Source) -> dict[str, Any]:
    """The study, its data told by their content, its preset as it is now."""
    settings = plain(study) | {"data": source.fingerprint, "preset": study.training.called(study.preset)}
    return {name: value for name, value in settings.items() if name not in UNSAID or value != UNSAID[name]}
