"""The two tasks of a fitted world, on one split of its tuples."""

from dataclasses import dataclass

import numpy as np

from unveil.models.tensor_factorization.task import Negatives, Parts, Task, Tuples, Where, split


@dataclass(frozen=True)
class Sampling:
    """How the negatives of exposure are drawn."""

    each: int = 3
    where: Where = "slots"
    redraw: bool = True


def tasks_of(tuples: Tuples, sampling: Sampling, rng: np.random.Generator) -> tuple[Task, Task]:
    """Relevance and exposure; both have the same tuples in training, validation and test."""
    for_split, for_negatives = rng.spawn(2)
    return _both(tuples, split(tuples, for_split), sampling, for_negatives)


def untested(tuples: Tuples, rng: np.random.Generator) -> Tuples:
    """All but the test part of what `tasks_of` makes with the same generator."""
    for_split, _ = rng.spawn(2)
    train, valid, _ = split(tuples, for_split)
    return train.and_also(valid)


def tuning_tasks(tuples: Tuples, sampling: Sampling, rng: np.random.Generator) -> tuple[Task, Task]:
    """The same two tasks of tuples that have no test part any more: a ninth, a tenth of all, is for validation."""
    for_split, for_negatives = rng.spawn(2)
    shuffled = for_split.permutation(len(tuples))
    train, valid = (tuples.where(np.sort(rows)) for rows in np.split(shuffled, [-(len(tuples) // 9)]))
    return _both(tuples, Parts(train, valid, tuples.where(shuffled[:0])), sampling, for_negatives)


def _both(known: Tuples, parts: Parts, sampling: Sampling, rng: np.random.Generator) -> tuple[Task, Task]:
    """No negative is a known tuple."""
    negatives = Negatives(known, sampling.each, sampling.where)
    return Task.of_ratings(parts), Task.of_exposure(parts, negatives, rng, redraw=sampling.redraw)
