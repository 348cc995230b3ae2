"""A world fitted to a log: relevance from its ratings, exposure from what was and was not interacted with.

The paper's section 5.1, steps 1 to 4: γ = σ(r̂ − centre) and θ = σ(ψ)^p, both from factors.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.models.factorization.gibbs import Gibbs, sample
from unveil.models.factorization.negatives import Negatives
from unveil.models.factorization.recipes import RECIPES, Learnt, Recipe
from unveil.models.factorization.task import Task
from unveil.models.factorization.tuples import Tuples, split
from unveil.propensity.factors import Factors
from unveil.simulation.fitting.observed import observed
from unveil.simulation.fitting.report import FitReport, Score, TaskReport
from unveil.simulation.world import World

Progress = Callable[[int, int], None]

_BIASES = Gibbs(width=0, sweeps=30, burn_in=10)


@dataclass(frozen=True)
class Fit:
    """How a world is fitted."""

    steps: int = 100
    recipe: str = "posterior"
    options: Mapping[str, Any] = field(default_factory=dict)  # of the recipe
    seed: int = 0
    centre: float = 0.0  # the rating that pleases every second time; 0: the paper's γ = σ(r̂)
    negatives: int = 3  # for each positive of exposure
    redraw: bool = True  # the negatives of each epoch anew
    real_lengths: bool = False  # users are there as long as their history; else, as in the paper, at all steps
    severity: float = 1.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A world and how well it was fitted."""

    world: World
    report: FitReport


def fit_world(log: Interactions, fit: Fit | None = None, progress: Progress | None = None) -> Fitted:
    """Learn relevance and exposure from a log with ratings."""
    fit = fit or Fit()
    recipe = RECIPES.build(fit.recipe, fit.options)
    tuples = observed(log, fit.steps)
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(fit.seed).spawn(4)]
    parts = split(tuples, streams[0])
    negatives = Negatives(tuples, fit.negatives, recipe.where)
    tasks = [Task.of_ratings(parts), Task.of_exposure(parts, negatives, streams[1], redraw=fit.redraw)]
    advance = _advance(sum(recipe.work(task) + _BIASES.sweeps * task.size for task in tasks), progress)
    (relevance, rated), (exposure, exposed) = (
        _learnt(recipe, task, stream, advance) for task, stream in zip(tasks, streams[2:], strict=True)
    )
    report = FitReport(recipe.name, asdict(fit) | {"options": vars(recipe)}, rated, exposed)
    world = World(
        relevance_logits=_centred(relevance, fit.centre),
        exposure_logits=exposure,
        users=log.users,
        items=log.items,
        start_U=_first_steps(tuples, fit.real_lengths),
        severity=fit.severity,
        origin={"kind": "fitted", "log": log.fingerprint()[:16], **report.plain()},
    )
    return Fitted(world, report)


def _learnt(
    recipe: Recipe, task: Task, rng: np.random.Generator, advance: Callable[[int], None]
) -> tuple[Factors, TaskReport]:
    for_recipe, for_biases = rng.spawn(2)
    learnt = recipe.learn(task, for_recipe, advance)
    train = task.epoch(for_biases)
    biases = sample(_BIASES, train, task.likelihood, task.parts[1:], for_biases, advance)
    report = TaskReport(
        metric=task.metric,
        tuples=len(train),
        mean=_score(task, *(np.full(len(part), train.value_N.mean()) for part in task.parts[1:])),
        bias_only=_score(task, *biases.mean),
        recipe=_score(task, learnt.valid_N, learnt.test_N),
        world=_score(task, *(_predicted(learnt, part) for part in task.parts[1:])),
    )
    return learnt.factors, report


def _score(task: Task, valid_N: NDArray[np.float64], test_N: NDArray[np.float64]) -> Score:
    return Score(task.score(valid_N, task.parts.valid), task.score(test_N, task.parts.test))


def _predicted(learnt: Learnt, tuples: Tuples) -> NDArray[np.float64]:
    """By the factors; of exposure the logit, which orders tuples as its sigmoid does."""
    return learnt.factors.logits_of(*tuples.sides).astype(np.float64)


def _centred(relevance: Factors, centre: float) -> Factors:
    return relevance if centre == 0 else relevance.plus(Factors.constant(*relevance.shape, -centre))


def _first_steps(tuples: Tuples, real_lengths: bool) -> NDArray[np.int32]:
    users, _, steps = tuples.shape
    first_U = np.full(users, steps - 1 if real_lengths else 0, np.int32)
    if real_lengths:
        np.minimum.at(first_U, tuples.user_N, tuples.step_N.astype(np.int32))
    return first_U


def _advance(total: int, progress: Progress | None) -> Callable[[int], None]:
    done = 0

    def advance(tuples: int) -> None:
        nonlocal done
        done += tuples
        if progress is not None:
            progress(min(done, total), total)

    return advance
