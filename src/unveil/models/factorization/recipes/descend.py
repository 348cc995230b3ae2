"""The epochs of a recipe that descends gradients."""

import numpy as np

from unveil.models.factorization.gradient import Epochs
from unveil.models.factorization.recipes.base import Advance, Learnt
from unveil.models.factorization.task import Task
from unveil.processes import threads


def descend(
    state: Epochs, task: Task, epochs: int, rng: np.random.Generator, advance: Advance, *, keep_best: bool
) -> Learnt:
    """Go through all epochs; keep the last, or the one that predicts the validation part best."""
    kept: tuple[float, Learnt] | None = None
    for _ in range(epochs):
        train = task.epoch(rng)
        with threads(1):
            state.epoch(train, rng)
        advance(len(train))
        if keep_best:
            learnt = Learnt.by(state.factors(), task)
            loss = task.loss(learnt.valid_N, task.parts.valid)
            kept = min(kept or (loss, learnt), (loss, learnt), key=lambda each: each[0])
    return kept[1] if kept is not None else Learnt.by(state.factors(), task)
