"""Running the study: worlds once, then every cell that is missing; and the results of each point."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unveil.experiment.assumptions.axes import Point
from unveil.experiment.assumptions.plan import Assumptions, Spot
from unveil.experiment.reproduce.results import Place, Results
from unveil.experiment.reproduce.run import UNSAID, by_the_same_names, cells_depend_on, worlds_and_cells
from unveil.experiment.reproduce.worlds import Source, adopt, refuse_more_than_one
from unveil.files import alone_in
from unveil.runs.progress import Silent, Watcher
from unveil.runs.workers import Engine
from unveil.studies.cells import Store

NAME = "assumptions"
#: Raised when the same settings no longer give the same cells.
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Survey:
    """What came out, and what it was made from."""

    plan: Assumptions
    source: Source
    cells: Mapping[Spot, Mapping[str, Any]]
    worlds: list[dict[str, Any]]
    seconds: float  # of this run
    made: int  # cells made by this run

    def at(self, point: Point) -> Results:
        """The results of one point: all its estimators."""
        arms = list(self.plan.arms(point))
        found = {
            Place(world, point.severity, replicate, name): self.cells[Spot(point, world, replicate, name)]
            for world in range(self.plan.worlds)
            for replicate in range(self.plan.replicates)
            for name in arms
        }
        return Results(found, (point.severity,), self.plan.worlds, self.plan.replicates, arms)

    @property
    def worker_seconds(self) -> float:
        """Of all cells and worlds, whenever they were made."""
        return float(sum(each["seconds"] for each in [*self.cells.values(), *self.worlds]))


def run(
    plan: Assumptions, folder: Path, engine: Engine, *, watch: Watcher | None = None, take_from: Path | None = None
) -> Survey:
    """Do what is left to do in `folder`, and give everything. A folder of the same study lends its worlds
    and, of another question, the cells whose users choose and are shown items as at the base point."""
    begun = time.monotonic()
    refuse_more_than_one(plan.study, plan.worlds)
    source = Source.of(plan.study)
    depends = cells_depend_on(plan.study, source)
    store = Store(folder, {"question": NAME, "format": FORMAT, "cells": depends}, UNSAID)
    if take_from is not None:
        store.compatible(take_from)  # refused before the folder is begun
    store.open()
    with alone_in(folder):
        world_jobs, cell_jobs = plan.world_jobs(folder), plan.cell_jobs(folder)
        if take_from is not None:
            store.copy_from(take_from, by_the_same_names(world_jobs, cell_jobs.values()))
            store.copy_from(take_from, plan.elsewhere(folder))
            adopt(take_from, folder, plan.worlds)
        worlds, cells, made = worlds_and_cells(world_jobs, cell_jobs, store, engine, watch or Silent())
    return Survey(plan, source, cells, worlds, time.monotonic() - begun, made)
