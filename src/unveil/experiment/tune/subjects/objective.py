"""What a tuner works with: the training part, a validation evaluator and a recipe. No test case can be reached.

Shapes: N rows of a log.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from unveil.data.interactions import Interactions
from unveil.data.sequences import Sequences
from unveil.data.splits import Split
from unveil.errors import UnveilError
from unveil.estimators.base import ESTIMATORS
from unveil.evaluation.validation import ValidationEvaluator
from unveil.propensity.base import PROPENSITIES
from unveil.propensity.impressions import training_impressions
from unveil.registry import Registry
from unveil.runs.config import Experiment
from unveil.simulation.truth import true_cases
from unveil.simulation.world import World
from unveil.training.fit import Ready, prepare, reads_log, validation_of
from unveil.training.progress import Watcher
from unveil.training.recipe import AUTO, Recipe
from unveil.training.trainer import Fitted, Keep

#: Settings that decide what a training asks of the log.
_DECIDE = frozenset({"estimator.name", "propensity.name"})


@dataclass(frozen=True, eq=False)
class Objective:
    """Settings and a replicate in, a training judged on the validation cases out.

    `logged` holds what the log recorded of the training part beside the histories, and nothing of other rows.
    """

    train: Sequences
    validation: ValidationEvaluator
    recipe: Recipe
    logged: Interactions | None = None
    world: World | None = None

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        log: Interactions,
        split: Split,
        world: World | None,
        *,
        truth: bool = False,
        tried: Collection[str] = (),
    ) -> Self:
        """The last place that sees the whole split: what it gives holds no test case. `tried`: settings that vary."""
        judging, recipe = experiment.evaluation, experiment.recipe
        exclude_seen = judging.exclude_seen
        if truth:
            split, exclude_seen = replace(split, valid=true_cases(_known(world), split.valid)), False
        validation = validation_of(
            split, recipe, protocol=judging.validation, exclude_seen=exclude_seen, seed=judging.seed
        )
        contexts = replace(validation.evaluator, sequences=validation.evaluator.sequences.apart())
        tells = log.propensity is not None or log.position is not None
        asked = reads_log(recipe) or not _DECIDE.isdisjoint(tried)
        logged = training_rows(log, split.train) if tells or asked else None
        validation = replace(validation, evaluator=contexts, of_takes=not truth)
        return cls(split.train.apart(), validation, recipe, logged, world)

    def recipe_of(self, settings: Mapping[str, Any], replicate: int = 0) -> Recipe:
        """The recipe of a trial. Replicate r has the same seed in all trials: they are compared in pairs."""
        recipe = self.recipe.changed(settings)
        seed = self.recipe.training.seed + replicate
        return recipe.changed({"training.seed": seed, **(_own_seeds(recipe, replicate) if replicate else {})})

    def ready(self, recipe: Recipe) -> Ready:
        """All parts of a training, checked and built."""
        return prepare(self.train, recipe, log=self.logged, world=self.world)

    def __call__(self, recipe: Recipe, keep: Keep, watch: Watcher) -> Fitted:
        """Train, or go on training, by the recipe."""
        evaluator = replace(self.validation.evaluator, length=recipe.model.length)
        return self.ready(recipe).fit(replace(self.validation, evaluator=evaluator), keep=keep, watch=watch)


def training_rows(log: Interactions, train: Sequences) -> Interactions:
    """The log with all rows outside the training part made blank: they stand where they stood, and were not shown."""
    shown_N = training_impressions(log, train)
    kept_N = shown_N.copy()
    kept_N[train.event_N] = True
    blank = {name: np.where(kept_N, column, np.zeros_like(column)) for name, column in log.columns().items()}
    blank["exposed"] = shown_N
    if log.propensity is not None:
        blank["propensity"] = np.where(kept_N, log.propensity, np.ones_like(log.propensity))
    return Interactions(blank.pop("user"), blank.pop("item"), log.users, log.items, **blank)


def _own_seeds(recipe: Recipe, replicate: int) -> dict[str, int]:
    """Where an estimator or a propensity draws lots of its own, a replicate has its own too."""
    parts: list[tuple[str, Registry[Any], Mapping[str, Any]]] = [
        ("estimator", ESTIMATORS, recipe.estimator),
        ("propensity", PROPENSITIES, recipe.propensity),
    ]
    return {
        f"{part}.seed": int(chosen.get("seed", 0)) + replicate
        for part, known, chosen in parts
        if chosen["name"] != AUTO and "seed" in known.options(str(chosen["name"]))
    }


def _known(world: World | None) -> World:
    if world is None:
        hint = "Name the world that the log was drawn from with --world."
        raise UnveilError("what users would have liked best is known in a world only", where="--truth", hint=hint)
    return world
