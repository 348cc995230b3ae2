"""Choosing a recipe's options on the validation part: a grid with replicates, kept as it grows.

The test part is never looked at. Replicates differ in everything random, the split included, and are shared by all
options; the mean over them decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from unveil.data.interactions import Interactions
from unveil.models.factorization.recipes import RECIPES
from unveil.models.factorization.recipes.base import Advance
from unveil.models.factorization.task import Task
from unveil.simulation.fit import Fit, Progress, counted
from unveil.simulation.fitting.kept import Cell, Kept, Options
from unveil.simulation.fitting.observed import observed

TASKS = ("relevance", "exposure")


def tuned(log: Interactions, fit: Fit, replicates: int, kept: Path, progress: Progress | None = None) -> Fit:
    """The fit with the options that predict the validation part best; what `kept` holds already is not done again."""
    grid = _Grid.of(log, fit, replicates)
    known = Kept.read(kept, grid.identity)
    todo = [cell for cell in grid.cells() if cell.key not in known.losses]
    advance = counted(sum(grid.work(cell) for cell in todo), progress)
    for cell in todo:
        known.add(cell, grid.loss(cell, advance))
    best = {task: known.best(grid.options(task), task, replicates) for task in TASKS}
    return replace(fit, relevance=best["relevance"], exposure=best["exposure"])


@dataclass(frozen=True, eq=False)
class _Grid:
    fit: Fit
    identity: dict[str, Any]
    tasks: list[tuple[Task, Task]]  # of each replicate

    @classmethod
    def of(cls, log: Interactions, fit: Fit, replicates: int) -> "_Grid":
        tuples = observed(log, fit.steps)
        seeds = np.random.SeedSequence([fit.seed, 1]).spawn(replicates)
        settings = {name: getattr(fit, name) for name in ("steps", "recipe", "seed", "negatives", "redraw")}
        given = {"relevance": dict(fit.relevance), "exposure": dict(fit.exposure)}
        return cls(fit, {"log": log.fingerprint(), **settings, **given}, [fit.tasks(tuples, seed) for seed in seeds])

    def options(self, task: str) -> list[Options]:
        """Every combination of the values that are worth trying, beside those that were given."""
        grid, given = RECIPES[self.fit.recipe].grid, getattr(self.fit, task)
        tried = {name: values for name, values in grid.items() if name not in given}
        return [{**given, **dict(zip(tried, values, strict=True))} for values in product(*tried.values())]

    def cells(self) -> Iterator[Cell]:
        for replicate in range(len(self.tasks)):
            for task in TASKS:
                yield from (Cell(task, options, replicate) for options in self.options(task))

    def work(self, cell: Cell) -> int:
        return RECIPES.build(self.fit.recipe, cell.options).work(self._task(cell))

    def loss(self, cell: Cell, advance: Advance) -> float:
        task = self._task(cell)
        rng = np.random.default_rng([self.fit.seed, 2, cell.replicate])
        learnt = RECIPES.build(self.fit.recipe, cell.options).learn(task, rng, advance)
        return task.loss(learnt.valid_N, task.parts.valid)

    def _task(self, cell: Cell) -> Task:
        return self.tasks[cell.replicate][TASKS.index(cell.task)]
