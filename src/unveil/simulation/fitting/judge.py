"""A recipe beside what needs no factors: the mean, and biases alone. Shapes: N tuples."""

import numpy as np
from numpy.typing import NDArray

from unveil.errors import UnveilError
from unveil.models.tensor_factorization.gibbs import Gibbs, sample
from unveil.models.tensor_factorization.recipes import Advance, Learnt, Recipe
from unveil.models.tensor_factorization.task import Task
from unveil.propensity.factors import Factors
from unveil.simulation.fitting.report import Score, TaskReport

Values = NDArray[np.float64]

#: The bias-only model: the posterior mean of b_s + c_i + a_t, with spreads that are learnt.
BIASES = Gibbs(width=0, sweeps=24, burn_in=8)


def judged(recipe: Recipe, task: Task, rng: np.random.Generator, advance: Advance) -> tuple[Factors, TaskReport]:
    """Learn a task, and the same tuples without factors."""
    for_recipe, for_biases = rng.spawn(2)
    learnt = recipe.learn(task, for_recipe, advance)
    _refuse_diverged(learnt, task)
    train = task.epoch(for_biases)
    asked = (task.parts.valid, task.parts.test)
    biases = sample(BIASES, train, task.likelihood, asked, for_biases, advance)
    by_world = Learnt.by(learnt.factors, task)
    report = TaskReport(
        metric=task.metric,
        tuples=len(train),
        mean=_score(task, *(np.full(len(part), train.value_N.mean()) for part in asked)),
        bias_only=_score(task, *biases.mean),
        recipe=_score(task, learnt.valid_N, learnt.test_N),
        world=_score(task, by_world.valid_N, by_world.test_N),
    )
    return learnt.factors, report


def _score(task: Task, valid_N: Values, test_N: Values) -> Score:
    return Score(task.score(valid_N, task.parts.valid), task.score(test_N, task.parts.test))


def _refuse_diverged(learnt: Learnt, task: Task) -> None:
    if not all(np.isfinite(table).all() for table in vars(learnt.factors).values()):
        raise UnveilError(
            f"the fit of {task.name} diverged: its factors are not all numbers", hint="Lower the recipe's lr."
        )
