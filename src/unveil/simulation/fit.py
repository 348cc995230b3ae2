"""A world fitted to a log: relevance from its ratings, exposure from what was and was not interacted with.

The paper's section 5.1, steps 1 to 4: γ = σ(r̂ − centre) and θ = σ(ψ)^p, both from factors. Shapes: U users.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.data.interactions import Interactions
from unveil.errors import UnveilError
from unveil.models.tensor_factorization.recipes import RECIPES, Recipe
from unveil.models.tensor_factorization.task import Task, Tuples
from unveil.propensity.factors import Factors
from unveil.simulation.fitting.judge import BIASES, judged
from unveil.simulation.fitting.observed import observed
from unveil.simulation.fitting.report import FitReport
from unveil.simulation.fitting.tasks import Sampling, tasks_of, untested
from unveil.simulation.world import World

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Fit:
    """How a world is fitted."""

    steps: int = 100
    recipe: str = "posterior"
    relevance: Mapping[str, Any] = field(default_factory=dict)  # options of the recipe for relevance
    exposure: Mapping[str, Any] = field(default_factory=dict)  # and for exposure
    seed: int = 0
    centre: float = 0.0  # the rating that pleases every second time; 0: the paper's γ = σ(r̂)
    negatives: int = 3  # for each positive of exposure
    redraw: bool = True  # the negatives of each epoch anew
    real_lengths: bool = False  # users are there as long as their history; else, as in the paper, at all steps
    severity: float = 1.0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UnveilError("out of range", where="seed", found=self.seed, expected="not negative")
        if not (np.isfinite(self.severity) and self.severity > 0):
            raise UnveilError("the severity is out of range", found=self.severity, expected="a number above 0")
        if not np.isfinite(self.centre):
            raise UnveilError("the centre is not a number", found=self.centre, expected="a rating")

    def recipes(self) -> tuple[Recipe, Recipe]:
        """The recipe as it is for relevance, and as it is for exposure."""
        return RECIPES.build(self.recipe, self.relevance), RECIPES.build(self.recipe, self.exposure)

    @property
    def sampling(self) -> Sampling:
        """How the negatives of exposure are drawn."""
        return Sampling(self.negatives, RECIPES[self.recipe].where, self.redraw)

    def tasks(self, tuples: Tuples) -> tuple[Task, Task]:
        """What is to be learnt: ratings, and exposure."""
        return tasks_of(tuples, self.sampling, self._seeds()[0])

    def untested(self, tuples: Tuples) -> Tuples:
        """The tuples that the fit will not be reported on: those that it may be tuned by."""
        return untested(tuples, self._seeds()[0])

    def learning(self) -> tuple[np.random.Generator, np.random.Generator]:
        """Chance in learning relevance, and exposure."""
        _, relevance, exposure = self._seeds()
        return relevance, exposure

    def _seeds(self) -> list[np.random.Generator]:
        return [np.random.default_rng(seed) for seed in np.random.SeedSequence(self.seed).spawn(3)]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A world and how well it was fitted."""

    world: World
    report: FitReport


def fit_world(log: Interactions, fit: Fit | None = None, progress: Progress | None = None) -> Fitted:
    """Learn relevance and exposure from a log with ratings."""
    fit = fit or Fit()
    recipes, tuples = fit.recipes(), observed(log, fit.steps)
    plans = list(zip(recipes, fit.tasks(tuples), fit.learning(), strict=True))
    advance = counted(sum(recipe.work(task) + BIASES.sweeps * task.size for recipe, task, _ in plans), progress)
    (relevance, rated), (exposure, exposed) = (judged(*plan, advance) for plan in plans)
    options = {"relevance": vars(recipes[0]), "exposure": vars(recipes[1])}
    report = FitReport(fit.recipe, asdict(fit) | options, rated, exposed)
    world = World(
        relevance_logits=_centred(relevance, fit.centre),
        exposure_logits=exposure,
        users=log.users,
        items=log.items,
        start_U=first_steps(tuples, fit.real_lengths),
        severity=fit.severity,
        origin={"kind": "fitted", "log": log.fingerprint()[:16], **report.plain()},
    )
    return Fitted(world, report)


def counted(total: int, progress: Progress | None) -> Callable[[int], None]:
    """A function that is told what was done since last time, and tells what is done in all."""
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(min(done, total), total)

    return advance


def _centred(relevance: Factors, centre: float) -> Factors:
    return relevance if centre == 0 else relevance.plus(Factors.constant(*relevance.shape, -centre))


def first_steps(tuples: Tuples, real_lengths: bool) -> NDArray[np.int32]:
    """0 for all, or the first step at which a user was seen; the last for a user who never was."""
    users, _, steps = tuples.shape
    if not real_lengths:
        return np.zeros(users, np.int32)
    first_U = np.full(users, steps - 1, np.int32)
    np.minimum.at(first_U, tuples.user_N, tuples.step_N.astype(np.int32))
    return first_U
