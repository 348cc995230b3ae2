"""The two tasks of a fitted world, on one split of its tuples."""

from dataclasses import dataclass

import numpy as np

from unveil.models.factorization.negatives import Negatives, Where
from unveil.models.factorization.task import Task
from unveil.models.factorization.tuples import Tuples, split


@dataclass(frozen=True)
class Sampling:
    """How the negatives of exposure are drawn."""

    each: int = 3
    where: Where = "slots"
    redraw: bool = True


def tasks_of(tuples: Tuples, sampling: Sampling, rng: np.random.Generator) -> tuple[Task, Task]:
    """Relevance and exposure; both have the same tuples in training, validation and test."""
    for_split, for_negatives = rng.spawn(2)
    parts = split(tuples, for_split)
    negatives = Negatives(tuples, sampling.each, sampling.where)
    exposure = Task.of_exposure(parts, negatives, for_negatives, redraw=sampling.redraw)
    return Task.of_ratings(parts), exposure
